package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

// Each statement sees what was committed before it, so a row that is read after a lock was waited
// for is up to date. The locks do the rest.
const beginSQL = "begin isolation level read committed read write"

// transaction is one transaction in two round trips: what is queued first goes out with load, what
// is queued then with commit.
type transaction struct {
	*dbsqlc.Queries
	*pipeline
	store   *Store
	conn    *pgxpool.Conn
	account uuid.UUID
	started rowOf[time.Time] // the query whose result opens the first round trip
	reads   []func() error   // read what else it brings, in the order in which it was queued
	now     time.Time        // when the transaction began, by the database's clock; set by load
	claims  bool             // whether this transaction claims a key, when it writes
	// isAbandoned reports whether the client is gone; nil: that makes no difference.
	isAbandoned func() bool
	events      bool // whether there is something for the relay to publish
	locks       bool // whether products are locked when they are read

	takes []product // whose stock it takes, in lock order
	leave func()    // ends its turn at them; nil: it has none
}

// begin takes a connection and queues the start of a transaction. The caller must close it.
func (s *Store) begin(ctx context.Context, account uuid.UUID) (*transaction, error) {
	conn, err := s.acquire(ctx)
	if err != nil {
		return nil, err
	}
	queries := newPipeline(conn)
	queries.queue.Queue(beginSQL)
	return &transaction{Queries: dbsqlc.New(queries), pipeline: queries, store: s, conn: conn, account: account}, nil
}

// load is the first round trip: it begins the transaction, sends all that is queued and reads the
// results. It returns errKeyTaken, and nothing may be decided, when the key that was to be claimed
// is taken. What has no key ends here if its client is gone. A replica that is paused later on
// loses the transaction.
func (tx *transaction) load(ctx context.Context) error {
	err := tx.open(ctx)
	if err == nil {
		tx.now, err = one(tx.started)
	}
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return errKeyTaken
	case err == nil && tx.isAbandoned != nil && tx.isAbandoned():
		return checkout.Unavailable("begin a transaction", errAbandoned)
	case err != nil:
		return translate("begin a transaction", err)
	}
	for _, read := range tx.reads {
		if err := read(); err != nil {
			return err
		}
	}
	return nil
}

// loaded has load read the result of a query that was queued, to where it returns.
func loaded[T any](tx *transaction, read func() (T, error)) *T {
	value := new(T)
	tx.reads = append(tx.reads, func() (err error) {
		*value, err = read()
		return err
	})
	return value
}

// open sends the first round trip. If the connection turns out lost before the transaction began it
// is made once more on another one: nothing can have been committed.
func (tx *transaction) open(ctx context.Context) error {
	queue := tx.queue
	err := tx.sendAndBegin(ctx)
	if err == nil || !isLost(ctx, tx.conn) {
		return err
	}
	tx.conn.Release()
	if tx.conn, err = tx.store.acquireLive(ctx); err != nil {
		return err
	}
	tx.rewind(tx.conn, queue)
	return tx.sendAndBegin(ctx)
}

// sendAndBegin sends what is queued and reads the answer to its first statement.
func (tx *transaction) sendAndBegin(ctx context.Context) error {
	tx.send(ctx)
	_, err := (&queuedResults{pipeline: tx.pipeline, round: tx.round}).Exec()
	return err
}

// commit is the second round trip. After [checkout.Unavailable] without errOutdated it is unknown
// whether the transaction was committed; after any other error it was not.
func (tx *transaction) commit(ctx context.Context) error {
	return tx.commitAnd(ctx, func() error { return nil })
}

// commitAnd is commit, and reads results of the second round trip.
func (tx *transaction) commitAnd(ctx context.Context, read func() error) error {
	if err := tx.finish(); err != nil {
		return translate("load", err)
	}
	if len(tx.takes) > 0 {
		tx.leave = tx.store.turns.take(ctx, tx.takes)
	}
	var tag string
	tx.queue.Queue("commit").Exec(func(result pgconn.CommandTag) error {
		tag = result.String()
		return nil
	})
	tx.send(ctx)
	unread := read()
	if err := cmp.Or(tx.finish(), unread); err != nil {
		return translate("commit", err)
	}
	if tag != "COMMIT" { // the transaction had failed before
		return fmt.Errorf("commit: the database answered %q", tag)
	}
	if tx.events && tx.store.eventsWritten != nil {
		tx.store.eventsWritten()
	}
	return nil
}

// rollback queues the end of the transaction. What is queued after it runs outside of it, in the
// same round trip. A transaction that has failed is ended at once, as no statement can be prepared
// in it.
func (tx *transaction) rollback(ctx context.Context) {
	_ = tx.finish() // whatever failed, it failed in what is rolled back
	tx.drop()
	if tx.conn.Conn().PgConn().TxStatus() == 'E' {
		_, _ = tx.conn.Exec(ctx, "rollback") // or else what is queued fails, too
		return
	}
	tx.queue.Queue("rollback")
}

// close rolls back unless the transaction has ended, and returns the connection to the pool, which
// discards it unless it is idle and healthy.
func (tx *transaction) close(ctx context.Context) {
	if tx.leave != nil {
		defer tx.leave()
	}
	if tx.conn == nil {
		return // it was lost, and there was no other
	}
	defer tx.conn.Release()
	_ = tx.finish()
	conn := tx.conn.Conn()
	if conn.IsClosed() || conn.PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	_, _ = conn.Exec(ctx, "rollback")
}

// readClock queues a look at the database's clock, which fails unless the account exists.
func (tx *transaction) readClock(ctx context.Context) rowOf[time.Time] {
	return tx.Now(ctx, []uuid.UUID{tx.account})
}
