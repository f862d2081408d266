package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/internal/outbox"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

// A transaction draws the positions of its events before it commits, so a lower position may become
// visible after a higher one. A relay that passed over it would never publish it.

const (
	// writersPoll and writersPollMax are how often Read looks whether transactions have ended: soon
	// at first, as most take milliseconds.
	writersPoll, writersPollMax = time.Millisecond, 50 * time.Millisecond

	// writersSQL names the transactions that have written to the outbox and not ended. Each locks
	// the table before it draws a position. (sqlc does not know pg_locks.)
	writersSQL = `SELECT virtualtransaction::text FROM pg_locks
		WHERE locktype = 'relation' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
		  AND relation = 'outbox'::regclass AND mode = 'RowExclusiveLock' AND granted`
)

// errRestored says that new events get positions that the cursor has passed, so they would never be
// published.
var errRestored = errors.New("outbox_id_seq is behind the outbox's cursor, as after a restore without sequences: stop all replicas and start them again")

// readCommitted reads the events up to the last position that was drawn, once every transaction has
// ended that may have drawn one of these: what is not there then will never be. Each statement has
// a snapshot of its own.
func readCommitted(ctx context.Context, tx pgx.Tx, after int64, limit int) ([]outbox.Event, int64, error) {
	q := dbsqlc.New(tx)
	last, err := q.LastDrawnPosition(ctx)
	if err == nil && last < after {
		err = fmt.Errorf("%w: position %d is drawn, %d is published", errRestored, last, after)
	}
	if err != nil || last == after {
		return nil, after, err
	}
	if err := awaitWriters(ctx, tx); err != nil {
		return nil, after, fmt.Errorf("wait for transactions that write to the outbox: %w", err)
	}
	rows, err := q.EventsBetween(ctx, dbsqlc.EventsBetweenParams{After: after, Last: last, BatchSize: int32(limit)})
	if len(rows) == limit {
		last = rows[limit-1].ID
	}
	return eventsOf(rows), last, err
}

// awaitWriters waits until all transactions have ended that have written to the outbox by now.
func awaitWriters(ctx context.Context, tx pgx.Tx) error {
	awaited, err := writers(ctx, tx)
	for pause := writersPoll; err == nil && len(awaited) > 0; pause = min(2*pause, writersPollMax) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		var now []string
		now, err = writers(ctx, tx)
		awaited = slices.DeleteFunc(awaited, func(w string) bool { return !slices.Contains(now, w) })
	}
	return err
}

func writers(ctx context.Context, tx pgx.Tx) ([]string, error) {
	rows, err := tx.Query(ctx, writersSQL)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
