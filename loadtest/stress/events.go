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

// readEvents measures the lag of the events since then, which no API tells, by the rows of outbox
// and inbox. It waits for the last ones, for a bounded time.
func readEvents(ctx context.Context, databaseURL string, since time.Time) (*published, error) {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return nil, fmt.Errorf("measure events: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for deadline := time.Now().Add(eventsTimeout); ; {
		e := &published{}
		err := e.read(ctx, conn, since)
		if err != nil || e.Outstanding == 0 || time.Now().After(deadline) {
			return e, err
		}
		if err := wait.Pause(ctx, eventsAgain); err != nil {
			return e, err
		}
	}
}

func (e *published) read(ctx context.Context, conn *pgx.Conn, since time.Time) error {
	consumed := make([]float64, 3) // seconds; zeros if there is no such event
	err := conn.QueryRow(ctx, `
		WITH written AS (SELECT * FROM outbox WHERE created_at >= $1),
		     effects AS (SELECT inbox.created_at - written.created_at AS lag FROM written JOIN inbox USING (event_id))
		SELECT (SELECT count(*) FROM written),
		       (SELECT count(*) FROM written WHERE id > (SELECT position FROM outbox_cursor)
		           OR type = ANY ($2) AND NOT EXISTS (SELECT FROM inbox WHERE inbox.event_id = written.event_id)),
		       (SELECT coalesce(percentile_disc('{0.5, 0.99, 1}'::float8[]) WITHIN GROUP (ORDER BY extract(epoch FROM lag)::float8), '{0, 0, 0}') FROM effects)`,
		since, effective).Scan(&e.Written, &e.Outstanding, &consumed)
	for i, to := range []*time.Duration{&e.Consumed.P50, &e.Consumed.P99, &e.Consumed.Max} {
		*to = time.Duration(consumed[i] * float64(time.Second))
	}
	return err
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
