package audit

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

// Events is what became of the events of the load.
type Events struct {
	Written     int `json:"written"`
	Outstanding int `json:"outstanding"` // not published, or without the effect that they must have
	Consumed    Lag `json:"consumed"`
}

// Lag is how long after the begin of its transaction something happened to an
// event, by the database's clock; so it is a little more than after the commit.
type Lag struct {
	P50 time.Duration `json:"p50"`
	P99 time.Duration `json:"p99"`
	Max time.Duration `json:"max"`
}

// EventReader measures the lag of events, which no API tells, by the rows of
// outbox and inbox.
type EventReader struct{ DatabaseURL string }

// Now is the database's time: events from then on are the load's.
func (r EventReader) Now(ctx context.Context) (now time.Time, err error) {
	err = r.query(ctx, func(conn *pgx.Conn) error { return conn.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&now) })
	return now, err
}

// Read waits for the last events, for a bounded time, and measures those that were written since
// then.
func (r EventReader) Read(ctx context.Context, since time.Time) (*Events, error) {
	e := &Events{}
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

func (e *Events) read(ctx context.Context, conn *pgx.Conn, since time.Time) error {
	var consumed []float64 // seconds; none if there is no such event
	err := conn.QueryRow(ctx, `
		WITH written AS (SELECT * FROM outbox WHERE created_at >= $1),
		     effects AS (SELECT inbox.created_at - written.created_at AS lag FROM written JOIN inbox USING (event_id))
		SELECT (SELECT count(*) FROM written),
		       (SELECT count(*) FROM written WHERE id > (SELECT position FROM outbox_cursor)
		           OR type = ANY ($2) AND NOT EXISTS (SELECT FROM inbox WHERE inbox.event_id = written.event_id)),
		       (SELECT percentile_disc('{0.5, 0.99, 1}'::float8[]) WITHIN GROUP (ORDER BY extract(epoch FROM lag)::float8) FROM effects)`,
		since, effective).Scan(&e.Written, &e.Outstanding, &consumed)
	e.Consumed = lag(consumed)
	return err
}

func lag(seconds []float64) Lag {
	if len(seconds) == 0 {
		return Lag{}
	}
	of := func(i int) time.Duration { return time.Duration(seconds[i] * float64(time.Second)) }
	return Lag{P50: of(0), P99: of(1), Max: of(2)}
}

func (r EventReader) query(ctx context.Context, do func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, r.DatabaseURL)
	if err != nil {
		return fmt.Errorf("measure events: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if err := do(conn); err != nil {
		return fmt.Errorf("measure events: %w", err)
	}
	return nil
}

// checkEvents wants them to be soon, if they were measured.
func checkEvents(e *Events) []Violation {
	if e == nil {
		return nil
	}
	var found []Violation
	if e.Outstanding > 0 {
		found = append(found, books.Broken(LateEvents, "%d of %d were not published or had no effect after %s", e.Outstanding, e.Written, eventsTimeout))
	}
	if e.Consumed.P99 > maxEventLag {
		found = append(found, books.Broken(LateEvents, "effective after %s (p99), more than %s", e.Consumed.P99, maxEventLag))
	}
	return found
}
