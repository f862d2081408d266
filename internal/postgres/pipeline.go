package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

// pipeline queues the generated batch queries and sends all of them in one round trip. Results are
// read in the order of the queries and only after send; finish checks the results that remain for
// errors.
type pipeline struct {
	dbsqlc.DBTX // the connection, for SendBatch to be replaced
	queue       *pgx.Batch
	sent        pgx.BatchResults
	round       int // how often the queue was sent
	next        int // the first unread result of the last round
}

func newPipeline(conn dbsqlc.DBTX) *pipeline {
	return &pipeline{DBTX: conn, queue: &pgx.Batch{}}
}

// SendBatch does not send anything yet. See send.
func (p *pipeline) SendBatch(_ context.Context, b *pgx.Batch) pgx.BatchResults {
	results := &queuedResults{pipeline: p, round: p.round + 1, index: p.queue.Len()}
	for _, query := range b.QueuedQueries {
		p.queue.Queue(query.SQL, query.Arguments...)
	}
	return results
}

// drop forgets what was queued and not sent.
func (p *pipeline) drop() { p.queue = &pgx.Batch{} }

// first queues something before what is queued and not sent. No result of the latter may be read.
func (p *pipeline) first(queue func()) {
	rest := p.queue
	p.drop()
	queue()
	p.queue.QueuedQueries = append(p.queue.QueuedQueries, rest.QueuedQueries...)
}

// send makes one round trip with what was queued. Any error shows in the results.
func (p *pipeline) send(ctx context.Context) {
	p.sent = p.DBTX.SendBatch(ctx, p.queue)
	p.queue, p.round, p.next = &pgx.Batch{}, p.round+1, 0
}

// rewind queues anew what was sent as the last round and not read, for another connection.
func (p *pipeline) rewind(conn dbsqlc.DBTX, queue *pgx.Batch) {
	_ = p.finish()
	p.drop()
	for _, query := range queue.QueuedQueries { // these know the statements of the connection that they were sent on
		p.queue.Queue(query.SQL, query.Arguments...)
	}
	p.DBTX, p.sent, p.round = conn, nil, p.round-1
}

// finish reads what is left of the last round and returns its first error.
func (p *pipeline) finish() error {
	if p.sent == nil {
		return nil
	}
	return p.sent.Close()
}

// seek goes to a result of the last round.
func (p *pipeline) seek(round, index int) error {
	if round != p.round || index < p.next {
		return errors.New("a result was read before it was there, or out of order")
	}
	for ; p.next < index; p.next++ {
		if _, err := p.sent.Exec(); err != nil {
			return err
		}
	}
	p.next++
	return nil
}

// queuedResults are the results of queries in a pipeline.
type queuedResults struct {
	pipeline *pipeline
	round    int
	index    int // of the next result
}

func (r *queuedResults) seek() error {
	r.index++
	return r.pipeline.seek(r.round, r.index-1)
}

func (r *queuedResults) Exec() (pgconn.CommandTag, error) {
	if err := r.seek(); err != nil {
		return pgconn.CommandTag{}, err
	}
	return r.pipeline.sent.Exec()
}

func (r *queuedResults) Query() (pgx.Rows, error) {
	if err := r.seek(); err != nil {
		return nil, err
	}
	return r.pipeline.sent.Query()
}

func (r *queuedResults) QueryRow() pgx.Row {
	if err := r.seek(); err != nil {
		return failedRow{err}
	}
	return r.pipeline.sent.QueryRow()
}

// Close leaves the round open for the queries after this one.
func (r *queuedResults) Close() error { return nil }

// Tx is nil, as the transaction is not the batch's.
func (r *queuedResults) Tx() pgx.Tx { return nil }

type failedRow struct{ err error }

func (r failedRow) Scan(...any) error { return r.err }

// rowOf and rowsOf are what the generated batch queries return.
type (
	rowOf[T any]  interface{ QueryRow(func(int, T, error)) }
	rowsOf[T any] interface{ Query(func(int, []T, error)) }
)

// one reads the row of a query that was sent. No row is pgx.ErrNoRows.
func one[T any](query rowOf[T]) (value T, err error) {
	query.QueryRow(func(_ int, v T, e error) { value, err = v, e })
	return value, err
}

// many reads the rows of a query that was sent.
func many[T any](query rowsOf[T]) (values []T, err error) {
	query.Query(func(_ int, v []T, e error) { values, err = v, e })
	return values, err
}
