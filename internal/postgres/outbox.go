package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/outbox"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

// replayTimeout bounds a replay, which reads the whole outbox.
const replayTimeout = 2 * time.Minute

// publish queues an event for the outbox.
func (tx *transaction) publish(ctx context.Context, event checkout.Event) error {
	data, err := json.Marshal(event.Data)
	if err != nil {
		return fmt.Errorf("encode event %s: %w", event.Type, err)
	}
	tx.InsertEvent(ctx, []dbsqlc.InsertEventParams{{EventID: newID(), AccountID: tx.account,
		Type: event.Type, Aggregate: event.Aggregate, Subject: event.Subject, Data: data}})
	if !tx.events && tx.store.eventsWritten != nil {
		tx.AfterCommit(tx.store.eventsWritten)
	}
	tx.events = true
	return nil
}

// Outbox is the relays' view of the database, safe for concurrent use.
type Outbox struct {
	store *Store
}

var (
	_ outbox.Store  = (*Outbox)(nil)
	_ outbox.Admin  = (*Outbox)(nil)
	_ outbox.Keeper = (*Outbox)(nil)
)

// NewOutbox makes an outbox on a pool, which remains the caller's to close.
func NewOutbox(pool *pgxpool.Pool) *Outbox { return &Outbox{store: NewStore(pool, Options{})} }

// Lease implements [outbox.Store].
func (o *Outbox) Lease(ctx context.Context, owner uuid.UUID, lease time.Duration) (int64, error) {
	published, err := write(ctx, o.store, func(ctx context.Context, q *dbsqlc.Queries) (int64, error) {
		return q.LeaseOutbox(ctx, dbsqlc.LeaseOutboxParams{Owner: owner, LeaseSeconds: lease.Seconds()})
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, outbox.ErrLeased
	}
	return published, err
}

// Release implements [outbox.Store].
func (o *Outbox) Release(ctx context.Context, owner uuid.UUID) error {
	_, err := write(ctx, o.store, func(ctx context.Context, q *dbsqlc.Queries) (struct{}, error) {
		return struct{}{}, q.ReleaseOutbox(ctx, owner)
	})
	return err
}

// Read implements [outbox.Store] in one transaction, and so on one connection: were it to go on
// after a restart of the database, positions could have been drawn again.
func (o *Outbox) Read(ctx context.Context, after int64, limit int) (events []outbox.Event, last int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, transactionTimeout)
	defer cancel()
	conn, err := o.store.acquire(ctx)
	if err != nil {
		return nil, after, err
	}
	defer conn.Release()
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		events, last, err = readCommitted(ctx, tx, after, limit)
		return err
	})
	return events, last, err
}

func eventsOf(rows []dbsqlc.Outbox) []outbox.Event {
	events := make([]outbox.Event, len(rows))
	for i, row := range rows {
		events[i] = outbox.Event{Position: row.ID, ID: row.EventID, AccountID: row.AccountID, Type: row.Type,
			Aggregate: row.Aggregate, Subject: row.Subject, Data: row.Data, CreatedAt: row.CreatedAt}
	}
	return events
}

// Advance implements [outbox.Store].
func (o *Outbox) Advance(ctx context.Context, owner uuid.UUID, from, to int64, lease time.Duration) error {
	n, err := write(ctx, o.store, func(ctx context.Context, q *dbsqlc.Queries) (int64, error) {
		return q.AdvanceOutbox(ctx, dbsqlc.AdvanceOutboxParams{Owner: owner, Before: from, Position: to, LeaseSeconds: lease.Seconds()})
	})
	if err == nil && n == 0 {
		return outbox.ErrLeased
	}
	return err
}

// Backlog implements [outbox.Store].
func (o *Outbox) Backlog(ctx context.Context) (outbox.Backlog, error) {
	row, err := read(ctx, o.store, func(ctx context.Context, q *dbsqlc.Queries) (dbsqlc.OutboxBacklogRow, error) {
		return q.OutboxBacklog(ctx)
	})
	return outbox.Backlog{Published: row.Position, Waiting: row.Waiting, Oldest: seconds(row.OldestSeconds)}, err
}

// Kept implements [outbox.Keeper].
func (o *Outbox) Kept(ctx context.Context, positions []int64) (map[uuid.UUID]bool, error) {
	ids, err := read(ctx, o.store, func(ctx context.Context, q *dbsqlc.Queries) ([]uuid.UUID, error) { return q.KeptEvents(ctx, positions) })
	kept := make(map[uuid.UUID]bool, len(ids))
	for _, id := range ids {
		kept[id] = true
	}
	return kept, err
}

// AdvanceGroup implements [outbox.GroupStore].
func (o *Outbox) AdvanceGroup(ctx context.Context, group outbox.Group, limit int) (outbox.Progress, error) {
	row, err := write(ctx, o.store, func(ctx context.Context, q *dbsqlc.Queries) (dbsqlc.AdvanceConsumerRow, error) {
		return q.AdvanceConsumer(ctx, dbsqlc.AdvanceConsumerParams{Consumer: group.Name, Types: group.Types, BatchSize: int32(limit)})
	})
	return outbox.Progress{Cursor: row.Position, Complete: !row.Incomplete, More: !row.Incomplete && row.Seen == int64(limit)}, err
}

// Missing implements [outbox.GroupStore].
func (o *Outbox) Missing(ctx context.Context, group outbox.Group, after, last int64, limit int) ([]outbox.Event, error) {
	rows, err := read(ctx, o.store, func(ctx context.Context, q *dbsqlc.Queries) ([]dbsqlc.Outbox, error) {
		return q.MissingEvents(ctx, dbsqlc.MissingEventsParams{Consumer: group.Name, Types: group.Types,
			After: after, Last: last, BatchSize: int32(limit)})
	})
	return eventsOf(rows), err
}

// Lag implements [outbox.GroupStore].
func (o *Outbox) Lag(ctx context.Context, group outbox.Group) (outbox.Lag, error) {
	row, err := read(ctx, o.store, func(ctx context.Context, q *dbsqlc.Queries) (dbsqlc.ConsumerLagRow, error) {
		return q.ConsumerLag(ctx, dbsqlc.ConsumerLagParams{Consumer: group.Name, Types: group.Types})
	})
	return outbox.Lag{Cursor: row.Position, Events: row.Events, Oldest: seconds(row.OldestSeconds),
		Retrying: row.Retrying, Dead: row.Dead}, err
}

// Replay implements [outbox.Admin] by one statement, which may take longer than others.
func (o *Outbox) Replay(ctx context.Context, since time.Duration) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, replayTimeout)
	defer cancel()
	var replayed int64
	err := pgx.BeginFunc(ctx, o.store.pool, func(tx pgx.Tx) (err error) {
		if _, err := tx.Exec(ctx, "SELECT set_config('statement_timeout', $1, true)", milliseconds(replayTimeout)); err != nil {
			return fmt.Errorf("set the statement timeout: %w", err)
		}
		replayed, err = dbsqlc.New(tx).ReplayEvents(ctx, since.Seconds())
		return err
	})
	return replayed, err
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
