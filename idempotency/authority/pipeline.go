package authority

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// errOutOfOrder is a mistake of whoever reads the results of queued statements.
var errOutOfOrder = errors.New("authority: a result was read before it was there, or out of order")

// sender is a connection.
type sender interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// pipeline queues statements and sends all of them in one round trip. Results are read in the order
// of the statements, and only after send; finish checks the results that remain for errors.
type pipeline struct {
	conn  sender
	queue *pgx.Batch
	sent  pgx.BatchResults
	round int // how often the queue was sent
	next  int // the first unread result of the last round
}

func newPipeline(conn sender) *pipeline { return &pipeline{conn: conn, queue: &pgx.Batch{}} }

// add queues one statement.
func (p *pipeline) add(sql string, args ...any) *results {
	p.queue.Queue(sql, args...)
	return &results{pipeline: p, round: p.round + 1, index: p.queue.Len() - 1}
}

// addBatch queues the statements of a batch.
func (p *pipeline) addBatch(b *pgx.Batch) *results {
	added := &results{pipeline: p, round: p.round + 1, index: p.queue.Len()}
	for _, query := range b.QueuedQueries {
		p.queue.Queue(query.SQL, query.Arguments...)
	}
	return added
}

// drop forgets what was queued and not sent.
func (p *pipeline) drop() { p.queue = &pgx.Batch{} }

// first queues a statement before what is queued and not sent. No result of the latter may be read.
func (p *pipeline) first(sql string, args ...any) {
	rest := p.queue
	p.drop()
	p.queue.Queue(sql, args...)
	p.queue.QueuedQueries = append(p.queue.QueuedQueries, rest.QueuedQueries...)
}

// send makes one round trip with what was queued. Any error shows in the results.
func (p *pipeline) send(ctx context.Context) {
	p.sent = p.conn.SendBatch(ctx, p.queue)
	p.queue, p.round, p.next = &pgx.Batch{}, p.round+1, 0
}

// rewind queues anew what was sent as the last round and not read, for another connection.
func (p *pipeline) rewind(conn sender, queue *pgx.Batch) {
	_ = p.finish()
	p.drop()
	for _, query := range queue.QueuedQueries { // these know the statements of the connection that they were sent on
		p.queue.Queue(query.SQL, query.Arguments...)
	}
	p.conn, p.sent, p.round = conn, nil, p.round-1
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
	if p.sent == nil || round != p.round || index < p.next {
		return errOutOfOrder
	}
	for ; p.next < index; p.next++ {
		if _, err := p.sent.Exec(); err != nil {
			return err
		}
	}
	p.next++
	return nil
}

// results are those of statements in a pipeline. They implement [pgx.BatchResults].
type results struct {
	pipeline *pipeline
	round    int
	index    int // of the next result
}

func (r *results) seek() error {
	r.index++
	return r.pipeline.seek(r.round, r.index-1)
}

func (r *results) Exec() (pgconn.CommandTag, error) {
	if err := r.seek(); err != nil {
		return pgconn.CommandTag{}, err
	}
	return r.pipeline.sent.Exec()
}

func (r *results) Query() (pgx.Rows, error) {
	if err := r.seek(); err != nil {
		return nil, err
	}
	return r.pipeline.sent.Query()
}

func (r *results) QueryRow() pgx.Row {
	if err := r.seek(); err != nil {
		return failedRow{err}
	}
	return r.pipeline.sent.QueryRow()
}

// Close leaves the round open for the statements after these.
func (r *results) Close() error { return nil }

// Tx is nil, as the transaction is not the batch's.
func (r *results) Tx() pgx.Tx { return nil }

type failedRow struct{ err error }

func (r failedRow) Scan(...any) error { return r.err }
