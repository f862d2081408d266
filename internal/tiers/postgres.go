package tiers

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

const (
	authorityQuery = `SELECT account_id::text, operation, status, encode(fingerprint, 'hex'), coalesce(resource, '/v1/payments/' || resource_id, ''),
	coalesce(response_status, 0), coalesce(encode(sha256(response_body), 'hex'), ''), created_at, completed_at, expires_at
FROM idempotency_keys WHERE key = $1 ORDER BY created_at DESC LIMIT 1`

	paymentQuery = `SELECT p.id::text, o.id::text, o.status, p.status, k.attempt, p.amount, p.currency, p.provider_id
FROM payments p JOIN orders o ON o.account_id = p.account_id AND o.id = p.order_id
	JOIN idempotency_keys k ON k.account_id = p.account_id AND k.key = $2 WHERE '/v1/payments/' || p.id = $1`

	// A group is done with an event that lies at or before its cursor, or is in its
	// inbox.
	eventsQuery = `SELECT e.id, e.type, e.id <= (SELECT position FROM outbox_cursor),
	ARRAY(SELECT c.consumer FROM consumer_cursors c WHERE e.id <= c.position
		OR EXISTS (SELECT FROM inbox i WHERE i.consumer = c.consumer AND i.position = e.id AND i.event_id = e.event_id) ORDER BY 1)
FROM outbox e WHERE '/v1/orders/' || e.subject = $1 ORDER BY e.id LIMIT 20`

	streamQuery = `SELECT coalesce((SELECT max(id) FROM outbox), 0), (SELECT position FROM outbox_cursor)`
)

// readPostgres fills in what the authority has, all of it as of one moment.
func readPostgres(ctx context.Context, url string, view *View) error {
	return inPostgres(ctx, url, func(ctx context.Context, tx pgx.Tx) (err error) {
		if view.Authority, err = readRow[Authority](ctx, tx, authorityQuery, view.Key); err != nil || view.Authority == nil {
			return err
		}
		order := view.Authority.Resource
		if view.Payment, err = readRow[Payment](ctx, tx, paymentQuery, order, view.Key); err != nil {
			return err
		}
		if view.Payment != nil {
			order = "/v1/orders/" + view.Payment.Order
		}
		rows, err := tx.Query(ctx, eventsQuery, order)
		if err != nil {
			return fmt.Errorf("read the events: %w", err)
		}
		view.Events, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Event])
		return err
	})
}

// inPostgres reads within one snapshot.
func inPostgres(ctx context.Context, url string, read func(context.Context, pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		return read(ctx, tx)
	})
}

// readRow reads a query's only row into the fields in their order; nil: there is none.
func readRow[T any](ctx context.Context, tx pgx.Tx, query string, args ...any) (*T, error) {
	rows, err := tx.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	row, err := pgx.CollectOneRow(rows, pgx.RowToAddrOfStructByPos[T])
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return row, err
}

// Stream is how far the events are.
type Stream struct {
	Last      int64 // position of the newest event in the outbox
	Published int64 // position up to which they are in the stream
}

// ReadStream asks the PostgreSQL at url.
func ReadStream(ctx context.Context, url string) (s Stream, err error) {
	err = inPostgres(ctx, url, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, streamQuery).Scan(&s.Last, &s.Published)
	})
	if err != nil {
		return Stream{}, fmt.Errorf("read the outbox: %w", err)
	}
	return s, nil
}
