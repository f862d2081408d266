package authority

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncepay/oncepay/idempotency"
)

// Tx is the transaction of a request. Exec, Query, QueryRow and CopyFrom make a statement at once,
// as those of [pgx.Tx] do. SendBatch only queues its statements: Send sends what is queued in one
// round trip, and the commit sends the rest together with the key. So a request that first queues
// all its reads, then calls Send, decides, and queues its writes, costs two round trips.
//
// It is the DBTX that sqlc generates. It is not safe for concurrent use, and ends when the
// function returns that it was given to.
type Tx struct {
	*pipeline
	keys      *Keys
	conn      *pgxpool.Conn
	look      *results // opens the transaction: the clock, and whether the key is free
	now       time.Time
	open      bool  // the transaction has begun, and the key is free
	failed    error // why it has not begun
	restarted bool
	// isAbandoned is asked once the transaction has begun; nil: never. A process that is paused
	// after that loses the transaction.
	isAbandoned func() bool

	reads  []func() error
	before []func(context.Context) (leave func())
	leave  []func()
	after  []func()
}

// begin takes a connection and queues the start of a transaction and the look that opens it. The
// caller must close it.
func (k *Keys) begin(ctx context.Context, look string, args ...any) (*Tx, error) {
	conn, err := k.acquire(ctx)
	if err != nil {
		return nil, err
	}
	tx := &Tx{pipeline: newPipeline(conn), keys: k, conn: conn}
	tx.add(beginSQL)
	tx.look = tx.add(look, args...)
	return tx, nil
}

// Now is when the transaction began, by the database's clock. It is zero before the first statement
// was sent.
func (tx *Tx) Now() time.Time { return tx.now }

// SendBatch queues the statements of a batch. Read their results after [Tx.Send], in their order.
// What is queued after the last Send goes out with the commit, and its results cannot be read.
//
// Callbacks of its statements ([pgx.QueuedQuery].Query and the like) are called when their results
// are read: by Close, which then sends the batch if Send has not, or before the next statement. An
// error that Close does not return ends the transaction.
func (tx *Tx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	added := tx.addBatch(b)
	if hasCallbacks(b) {
		added.ready = func() error {
			if added.round > tx.round {
				return tx.Send(ctx)
			}
			return tx.failed
		}
	}
	return added
}

// AfterSend has the next [Tx.Send] call read, which reads results of what was queued. Its error is
// that of Send.
func (tx *Tx) AfterSend(read func() error) { tx.reads = append(tx.reads, read) }

// BeforeCommit has enter called before the commit is sent. What it returns is called when
// PostgreSQL has answered, or will not any more.
func (tx *Tx) BeforeCommit(enter func(context.Context) (leave func())) {
	tx.before = append(tx.before, enter)
}

// AfterCommit has f called once the transaction is committed.
func (tx *Tx) AfterCommit(f func()) { tx.after = append(tx.after, f) }

// Send makes one round trip with what is queued. The first one also begins the transaction, and
// returns an error if the key is taken; return it.
func (tx *Tx) Send(ctx context.Context) error {
	if tx.failed != nil {
		return tx.failed
	}
	if err := tx.finish(); err != nil {
		return err
	}
	switch {
	case tx.open:
		tx.send(ctx)
	default:
		if tx.failed = tx.start(ctx); tx.failed != nil {
			return tx.failed
		}
	}
	reads := tx.reads
	tx.reads = nil
	for _, read := range reads {
		if err := read(); err != nil {
			return err
		}
	}
	return nil
}

// start sends the first round trip and reads its look.
func (tx *Tx) start(ctx context.Context) error {
	if err := tx.startLive(ctx); err != nil {
		return fmt.Errorf("begin a transaction: %w", unavailable(err))
	}
	free := false
	if err := tx.look.QueryRow().Scan(&tx.now, &free); err != nil {
		return fmt.Errorf("begin a transaction: %w", unavailable(err))
	}
	if !free {
		return errTaken
	}
	if tx.isAbandoned != nil && tx.isAbandoned() {
		return ErrAbandoned
	}
	tx.open = true
	return nil
}

// startLive begins. If the connection turns out lost before that, it begins once more on another
// one: nothing can have been committed.
func (tx *Tx) startLive(ctx context.Context) error {
	queue := tx.queue
	err := tx.sendBegin(ctx)
	if err == nil || !isLost(ctx, tx.conn) {
		return err
	}
	tx.conn.Release()
	if tx.conn, err = tx.keys.acquireLive(ctx); err != nil {
		return err
	}
	tx.rewind(tx.conn, queue)
	return tx.sendBegin(ctx)
}

func (tx *Tx) sendBegin(ctx context.Context) error {
	tx.send(ctx)
	_, err := (&results{pipeline: tx.pipeline, round: tx.round}).Exec()
	return err
}

// Exec makes a statement, after all that is queued.
func (tx *Tx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := tx.flush(ctx); err != nil {
		return pgconn.CommandTag{}, err
	}
	return tx.conn.Exec(ctx, sql, args...)
}

// Query makes a query, after all that is queued. Close its rows before the next statement.
func (tx *Tx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := tx.flush(ctx); err != nil {
		return nil, err
	}
	return tx.conn.Query(ctx, sql, args...)
}

// QueryRow makes a query for one row, after all that is queued.
func (tx *Tx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if err := tx.flush(ctx); err != nil {
		return failedRow{err}
	}
	return tx.conn.QueryRow(ctx, sql, args...)
}

// CopyFrom copies rows into a table, after all that is queued, as that of [pgx.Tx] does.
func (tx *Tx) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error) {
	if err := tx.flush(ctx); err != nil {
		return 0, err
	}
	return tx.conn.CopyFrom(ctx, table, columns, rows)
}

func (tx *Tx) flush(ctx context.Context) error {
	if tx.failed != nil || tx.queue.Len() > 0 { // also if the caller has ignored the error of an earlier statement
		if err := tx.Send(ctx); err != nil {
			return err
		}
	}
	return tx.finish()
}

// commit is the last round trip. After an [idempotency.ErrUnavailable] it is unknown whether the
// transaction was committed; after any other error it was not.
func (tx *Tx) commit(ctx context.Context) error {
	if err := tx.finish(); err != nil {
		return fmt.Errorf("load: %w", unavailable(err))
	}
	if tx.isAbandoned != nil && tx.isAbandoned() { // again: a proxy may notice late that its client has left
		return ErrAbandoned
	}
	for _, enter := range tx.before {
		tx.leave = append(tx.leave, enter(ctx))
	}
	end := tx.add("commit")
	tx.send(ctx)
	tag, err := end.Exec()
	if err = cmp.Or(tx.finish(), err); err != nil {
		return fmt.Errorf("commit: %w", tx.keys.translate(err))
	}
	if tag.String() != "COMMIT" { // the transaction had failed before
		return fmt.Errorf("%w: commit: the database answered %q", idempotency.ErrUnavailable, tag)
	}
	for _, f := range tx.after {
		f()
	}
	return nil
}

// rollback queues the end of the transaction. What is queued after it runs outside of it, in the
// same round trip. A transaction that has failed is ended at once, as no statement can be prepared
// in it.
func (tx *Tx) rollback(ctx context.Context) {
	tx.discard() // whatever failed, it failed in what is rolled back
	tx.drop()
	tx.reads = nil
	if tx.hasFailed() {
		_, _ = tx.conn.Exec(ctx, "rollback") // or else what is queued fails, too
		return
	}
	tx.add("rollback")
}

// restart rolls back, and begins again in the round trip that follows.
func (tx *Tx) restart(ctx context.Context) {
	tx.rollback(ctx)
	tx.add(beginSQL)
	tx.add(clockSQL) // for its limits
	tx.restarted = true
}

// writeKey queues what is written of the key before all writes that are queued: keys are locked
// before rows that are not locked yet.
func (tx *Tx) writeKey(sql string, args ...any) {
	if tx.restarted { // nothing else is written
		tx.add(sql, args...)
		return
	}
	tx.first(sql, args...)
}

// hasFailed reports whether a statement of the transaction has failed, so that it cannot commit.
func (tx *Tx) hasFailed() bool { return tx.conn.Conn().PgConn().TxStatus() == 'E' }

// close rolls back unless the transaction has ended, and returns the connection to the pool, which
// discards it unless it is idle and healthy.
func (tx *Tx) close(ctx context.Context) {
	defer func() {
		for _, leave := range slices.Backward(tx.leave) {
			leave()
		}
	}()
	if tx.conn == nil {
		return // it was lost, and there was no other
	}
	defer tx.conn.Release()
	tx.discard()
	conn := tx.conn.Conn()
	if conn.IsClosed() || conn.PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	_, _ = conn.Exec(ctx, "rollback")
}
