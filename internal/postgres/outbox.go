package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncepay/oncepay/internal/outbox"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

const (
	// notifySQL wakes the relays. It is sent after each commit with an event, in
	// the same round trip, and not by a trigger: a transaction that notifies takes
	// a lock on the whole database from before its commit is flushed to disk until
	// after (PostgreSQL source, PreCommit_Notify), so commits would queue up one
	// by one. With 32 clients that was 800 to 1900 transactions a second instead
	// of 5300 to 13000; by itself NOTIFY flushes nothing, and it was 4000 to 7900.
	// If the replica dies in between, the relays' polling finds the event.
	notifySQL = "notify oncepay_outbox"
	listenSQL = "listen oncepay_outbox"

	// listenCheck is how often a silent connection is tested. Until a broken one
	// is noticed, relays poll.
	listenCheck = 30 * time.Second

	// replayTimeout bounds a replay: a million events take some twenty seconds.
	replayTimeout = 2 * time.Minute
)

// Outbox is the relays' view of the database, safe for concurrent use.
type Outbox struct {
	store *Store
}

var (
	_ outbox.Store = (*Outbox)(nil)
	_ outbox.Admin = (*Outbox)(nil)
)

// NewOutbox makes an outbox on a pool, which remains the caller's to close.
func NewOutbox(pool *pgxpool.Pool) *Outbox { return &Outbox{store: NewStore(pool, Options{})} }

// Claim implements [outbox.Store].
func (o *Outbox) Claim(ctx context.Context, claim uuid.UUID, limit int, lease time.Duration) ([]outbox.Event, error) {
	rows, err := write(ctx, o.store, func(ctx context.Context, q *dbsqlc.Queries) ([]dbsqlc.ClaimEventsRow, error) {
		return q.ClaimEvents(ctx, dbsqlc.ClaimEventsParams{Claim: claim, LeaseSeconds: lease.Seconds(), BatchSize: int32(limit)})
	})
	events := make([]outbox.Event, len(rows))
	for i, row := range rows {
		events[i] = outbox.Event{Position: row.ID, ID: row.EventID, AccountID: row.AccountID, Type: row.Type, Aggregate: row.Aggregate,
			Subject: row.Subject, Data: row.Data, CreatedAt: row.CreatedAt, Attempts: int(row.Attempts)}
	}
	return events, err
}

// MarkPublished implements [outbox.Store].
func (o *Outbox) MarkPublished(ctx context.Context, claim uuid.UUID, positions []int64) error {
	_, err := write(ctx, o.store, func(ctx context.Context, q *dbsqlc.Queries) (int64, error) {
		return q.MarkPublished(ctx, dbsqlc.MarkPublishedParams{Claim: claim, Ids: positions})
	})
	return err
}

// MarkRefused implements [outbox.Store].
func (o *Outbox) MarkRefused(ctx context.Context, claim uuid.UUID, refusal outbox.Refusal) error {
	_, err := write(ctx, o.store, func(ctx context.Context, q *dbsqlc.Queries) (int64, error) {
		return q.MarkRefused(ctx, dbsqlc.MarkRefusedParams{Claim: claim, ID: refusal.Position, Reason: &refusal.Reason,
			PauseSeconds: refusal.Pause.Seconds(), Dead: refusal.Dead})
	})
	return err
}

// Release implements [outbox.Store].
func (o *Outbox) Release(ctx context.Context, claim uuid.UUID) error {
	_, err := write(ctx, o.store, func(ctx context.Context, q *dbsqlc.Queries) (int64, error) {
		return q.ReleaseEvents(ctx, claim)
	})
	return err
}

// Backlog implements [outbox.Store].
func (o *Outbox) Backlog(ctx context.Context) (outbox.Backlog, error) {
	row, err := read(ctx, o.store, func(ctx context.Context, q *dbsqlc.Queries) (dbsqlc.OutboxBacklogRow, error) {
		return q.OutboxBacklog(ctx)
	})
	return outbox.Backlog{Waiting: row.Waiting, Dead: row.Dead, Oldest: seconds(row.OldestSeconds)}, err
}

// Listen implements [outbox.Store] on a connection of its own, beside the pool.
func (o *Outbox) Listen(ctx context.Context, wake func()) error {
	pooled, err := o.store.acquire(ctx)
	if err != nil {
		return err
	}
	conn := pooled.Hijack()
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	if _, err := conn.Exec(ctx, listenSQL); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	wake() // for what was committed before
	for {
		if err := heard(ctx, conn); err != nil {
			return fmt.Errorf("wait for a notification: %w", err)
		}
		wake()
	}
}

// heard waits for a notification or, from time to time, finds that the
// connection is all right.
func heard(ctx context.Context, conn *pgx.Conn) error {
	waitCtx, cancel := context.WithTimeout(ctx, listenCheck)
	defer cancel()
	_, err := conn.WaitForNotification(waitCtx)
	if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	pingCtx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	return conn.Ping(pingCtx)
}

// Unpublished implements [outbox.Admin].
func (o *Outbox) Unpublished(ctx context.Context, limit int) ([]outbox.Unpublished, error) {
	rows, err := read(ctx, o.store, func(ctx context.Context, q *dbsqlc.Queries) ([]dbsqlc.ListUnpublishedRow, error) {
		return q.ListUnpublished(ctx, int32(limit))
	})
	events := make([]outbox.Unpublished, len(rows))
	for i, row := range rows {
		events[i] = outbox.Unpublished{Position: row.ID, Type: row.Type, Subject: row.Subject, State: stateOf(row),
			Age: seconds(row.AgeSeconds), Attempts: int(row.Attempts), LastError: row.LastError}
	}
	return events, err
}

func stateOf(row dbsqlc.ListUnpublishedRow) outbox.State {
	switch {
	case row.Dead:
		return outbox.StateDead
	case row.Blocked:
		return outbox.StateBlocked
	case row.Claimed:
		return outbox.StateClaimed
	case row.Attempts > 0:
		return outbox.StatePausing
	default:
		return outbox.StateWaiting
	}
}

// Retry implements [outbox.Admin].
func (o *Outbox) Retry(ctx context.Context, positions []int64) (int64, error) {
	if positions == nil {
		positions = []int64{} // not NULL
	}
	n, err := write(ctx, o.store, func(ctx context.Context, q *dbsqlc.Queries) (int64, error) {
		return q.RetryEvents(ctx, positions)
	})
	o.wakeRelays(ctx)
	return n, err
}

// Replay implements [outbox.Admin] by one statement, which may take longer than
// others.
func (o *Outbox) Replay(ctx context.Context, since time.Duration) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, replayTimeout)
	defer cancel()
	conn, err := o.store.acquire(ctx)
	if err != nil {
		return 0, err
	}
	session := conn.Hijack() // so that nobody inherits its setting
	defer func() { _ = session.Close(context.WithoutCancel(ctx)) }()
	if _, err := session.Exec(ctx, "SELECT set_config('statement_timeout', $1, false)", milliseconds(replayTimeout)); err != nil {
		return 0, fmt.Errorf("set the statement timeout: %w", err)
	}
	n, err := dbsqlc.New(session).ReplayEvents(ctx, since.Seconds())
	if err != nil {
		return 0, err
	}
	o.wakeRelays(ctx)
	return n, nil
}

// wakeRelays does without an error: polling is the net.
func (o *Outbox) wakeRelays(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, acquireTimeout)
	defer cancel()
	_, _ = o.store.pool.Exec(ctx, notifySQL)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
