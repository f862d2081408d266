package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/internal/outbox"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

// The pauses between the attempts of a dead letter are in sql/queries/dead_letters.sql.

// refuse records a dead letter, unless the event has had its effect meanwhile.
func (i *Inbox) refuse(ctx context.Context, group outbox.Group, event outbox.Event, reason string) (attempts int, err error) {
	n, err := write(ctx, i.store, func(ctx context.Context, q *dbsqlc.Queries) (int32, error) {
		return q.RefuseEvent(ctx, dbsqlc.RefuseEventParams{Consumer: group.Name, Position: event.Position, EventID: event.ID,
			Reason: reason, MaxAttempts: outbox.MaxAttempts})
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return int(n), err
}

// DueDeadLetters implements [outbox.GroupStore].
func (o *Outbox) DueDeadLetters(ctx context.Context) ([]outbox.Event, error) {
	rows, err := write(ctx, o.store, func(ctx context.Context, q *dbsqlc.Queries) ([]dbsqlc.Outbox, error) {
		return q.TakeDueDeadLetters(ctx)
	})
	return eventsOf(rows), err
}

// DeadLetters implements [outbox.Admin].
func (o *Outbox) DeadLetters(ctx context.Context, limit int) ([]outbox.DeadLetter, error) {
	rows, err := read(ctx, o.store, func(ctx context.Context, q *dbsqlc.Queries) ([]dbsqlc.ListDeadLettersRow, error) {
		return q.ListDeadLetters(ctx, int32(limit))
	})
	letters := make([]outbox.DeadLetter, len(rows))
	for i, row := range rows {
		letters[i] = outbox.DeadLetter{Group: row.Consumer, Position: row.Position, Type: row.Type, Subject: row.Subject,
			Age: seconds(row.AgeSeconds), Attempts: int(row.Attempts), RetryAt: row.RetryAt, LastError: row.LastError}
	}
	return letters, err
}

// Retry implements [outbox.Admin].
func (o *Outbox) Retry(ctx context.Context, positions []int64) ([]int64, error) {
	if positions == nil {
		positions = []int64{} // not NULL
	}
	return write(ctx, o.store, func(ctx context.Context, q *dbsqlc.Queries) ([]int64, error) {
		return q.RetryDeadLetters(ctx, positions)
	})
}
