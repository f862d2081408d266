package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/internal/wait"
	"github.com/oncepay/oncepay/loadtest/books"
)

const (
	// maxEventLag bounds the 99th percentile of how late an event is published,
	// and has its effect, at 50 requests per second.
	maxEventLag = time.Second
	// eventsTimeout bounds the wait for the last events, and eventsAgain is how
	// often they are looked for.
	eventsTimeout, eventsAgain = 5 * time.Second, 100 * time.Millisecond
)

// effective are the events that the sample consumers act on.
var effective = []string{"order.placed", "payment.succeeded"}

// published is what became of the events of the load.
type published struct {
	Written     int `json:"written"`
	Outstanding int `json:"outstanding"` // not published, or without the effect that they must have
	Consumed    lag `json:"consumed"`
}

// lag is how long after the begin of its transaction something happened to an
// event, by the database's clock; so it is a little more than after the commit.
type lag struct {
	P50 time.Duration `json:"p50"`
	P99 time.Duration `json:"p99"`
	Max time.Duration `json:"max"`
}

// eventReader measures the lag of events, which no API tells, by the rows of outbox and inbox.
type eventReader struct{ databaseURL string }

// now is the database's time: events from then on are the load's.
func (r eventReader) now(ctx context.Context) (now time.Time, err error) {
	err = r.query(ctx, func(conn *pgx.Conn) error { return conn.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&now) })
	return now, err
}

// read waits for the last events, for a bounded time, and measures those that were written since
// then.
func (r eventReader) read(ctx context.Context, since time.Time) (*published, error) {
	e := &published{}
	err := r.query(ctx, func(conn *pgx.Conn) error {
		for deadline := time.Now().Add(eventsTimeout); ; {
			if err := e.read(ctx, conn, since); err != nil {
				return err
			}
			if e.Outstanding == 0 || time.Now().After(deadline) {
				return nil
			}
			if err := wait.Pause(ctx, eventsAgain); err != nil {
				return err
			}
		}
	})
	return e, err
}

func (e *published) read(ctx context.Context, conn *pgx.Conn, since time.Time) error {
	var consumed []float64 // seconds; none if there is no such event
	err := conn.QueryRow(ctx, `
		WITH written AS (SELECT * FROM outbox WHERE created_at >= $1),
		     effects AS (SELECT inbox.created_at - written.created_at AS lag FROM written JOIN inbox USING (event_id))
		SELECT (SELECT count(*) FROM written),
		       (SELECT count(*) FROM written WHERE id > (SELECT position FROM outbox_cursor)
		           OR type = ANY ($2) AND NOT EXISTS (SELECT FROM inbox WHERE inbox.event_id = written.event_id)),
		       (SELECT percentile_disc('{0.5, 0.99, 1}'::float8[]) WITHIN GROUP (ORDER BY extract(epoch FROM lag)::float8) FROM effects)`,
		since, effective).Scan(&e.Written, &e.Outstanding, &consumed)
	if len(consumed) > 0 {
		of := func(i int) time.Duration { return time.Duration(consumed[i] * float64(time.Second)) }
		e.Consumed = lag{P50: of(0), P99: of(1), Max: of(2)}
	}
	return err
}

func (r eventReader) query(ctx context.Context, do func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, r.databaseURL)
	if err != nil {
		return fmt.Errorf("measure events: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if err := do(conn); err != nil {
		return fmt.Errorf("measure events: %w", err)
	}
	return nil
}

// check wants them to be soon, if they were measured.
func (e *published) check() (found []books.Violation) {
	if e == nil {
		return nil
	}
	if e.Outstanding > 0 {
		found = append(found, books.Broken(inTime, "%d of %d were not published or had no effect after %s", e.Outstanding, e.Written, eventsTimeout))
	}
	if e.Consumed.P99 > maxEventLag {
		found = append(found, books.Broken(inTime, "effective after %s (p99), more than %s", e.Consumed.P99, maxEventLag))
	}
	return found
}
