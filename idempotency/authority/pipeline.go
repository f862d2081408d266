package authority

import (
	"cmp"
	"context"
	"errors"
	"slices"

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
	conn   sender
	queue  *pgx.Batch
	flight *pgx.Batch // what was sent as the last round
	sent   pgx.BatchResults
	round  int   // how often the queue was sent
	next   int   // the first unread result of the last round
	broken error // of a callback of the last round, which was called because a later result was read
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
	p.append(b)
	added.end = p.queue.Len()
	return added
}

// append queues copies: what was sent knows the prepared statements of its connection.
func (p *pipeline) append(b *pgx.Batch) {
	for _, query := range b.QueuedQueries {
		p.queue.Queue(query.SQL, query.Arguments...).Fn = query.Fn
	}
}

// hasCallbacks reports whether a queue has statements whose results a function of their own reads.
func hasCallbacks(b *pgx.Batch) bool {
	return slices.ContainsFunc(b.QueuedQueries, func(q *pgx.QueuedQuery) bool { return q.Fn != nil })
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
	p.sent, p.flight = p.conn.SendBatch(ctx, p.queue), p.queue
	p.queue, p.round, p.next, p.broken = &pgx.Batch{}, p.round+1, 0, nil
}

// rewind queues anew what was sent as the last round and not read, for another connection.
func (p *pipeline) rewind(conn sender, queue *pgx.Batch) {
	_ = p.finish()
	p.drop()
	p.append(queue)
	p.conn, p.sent, p.round = conn, nil, p.round-1
}

// finish reads what is left of the last round, calls its callbacks, and returns its first error.
func (p *pipeline) finish() error {
	if p.sent == nil {
		return nil
	}
	p.next = p.flight.Len()
	return cmp.Or(p.broken, p.sent.Close())
}

// discard is finish for a round that is rolled back: no callback is called.
func (p *pipeline) discard() {
	if p.flight != nil {
		p.forget(0, p.flight.Len())
	}
	_ = p.finish()
}

// forget drops the callbacks of statements of the last round.
func (p *pipeline) forget(from, to int) {
	for _, query := range p.flight.QueuedQueries[from:to] {
		query.Fn = nil
	}
}

// seek goes to a result of the last round.
func (p *pipeline) seek(round, index int) error {
	if p.sent == nil || round != p.round || index < p.next {
		return errOutOfOrder
	}
	for p.next < index {
		if err := p.pass(); err != nil {
			p.broken = cmp.Or(p.broken, err)
			return err
		}
	}
	p.next++
	return nil
}

// pass reads the next result, as pgx does when a batch is closed.
func (p *pipeline) pass() error {
	query := p.flight.QueuedQueries[p.next]
	p.next++
	if query.Fn != nil {
		return query.Fn(p.sent)
	}
	_, err := p.sent.Exec()
	return err
}

// results are those of statements in a pipeline. They implement [pgx.BatchResults].
type results struct {
	pipeline *pipeline
	round    int
	index    int // of the next result
	// Of a batch with callbacks: where it ends, and ready sends it unless it was sent.
	end   int
	ready func() error
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

// Close leaves the round open for the statements after these. It calls the callbacks that are left,
// up to the first error, as pgx does. If the batch was not sent yet, Close sends it.
func (r *results) Close() error {
	if r.ready == nil {
		return nil
	}
	if err := r.ready(); err != nil {
		return err
	}
	for p := r.pipeline; r.round == p.round && p.next < r.end; {
		if err := p.pass(); err != nil {
			p.forget(p.next, r.end)
			return err
		}
	}
	return nil
}

// Tx is nil, as the transaction is not the batch's.
func (r *results) Tx() pgx.Tx { return nil }

type failedRow struct{ err error }

func (r failedRow) Scan(...any) error { return r.err }
