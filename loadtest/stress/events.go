package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/internal/wait"
	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/report"
)

const (
	// maxEventLag bounds the 99th percentile of how late an event has its effect, at 50 requests
	// per second.
	maxEventLag = time.Second
	// eventsTimeout bounds the wait for the last events, and eventsAgain is how
	// often they are looked for.
	eventsTimeout, eventsAgain = 10 * time.Second, 100 * time.Millisecond
)

// effective are the events that the sample consumers act on.
var effective = []string{"order.placed", "payment.succeeded"}

// published is what became of the events of the load.
type published struct {
	Written     int     `json:"written"`
	Outstanding int     `json:"outstanding"` // not published, or without the effect that they must have
	Consumed    latency `json:"consumed"`    // from the begin of the transaction, so a little more than from the commit
}

// eventsSQL counts the events since a time by the rows of outbox and inbox, and has their lags in
// milliseconds: zeros if there is no such event.
const eventsSQL = `
	WITH written AS (SELECT * FROM outbox WHERE created_at >= $1),
	     effects AS (SELECT 1000 * extract(epoch FROM inbox.created_at - written.created_at)::float8 AS lag FROM written JOIN inbox USING (event_id))
	SELECT (SELECT count(*) FROM written),
	       (SELECT count(*) FROM written WHERE id > (SELECT position FROM outbox_cursor)
	           OR type = ANY ($2) AND NOT EXISTS (SELECT FROM inbox WHERE inbox.event_id = written.event_id)),
	       (SELECT coalesce(percentile_disc('{0.5, 0.95, 0.99, 1}'::float8[]) WITHIN GROUP (ORDER BY lag), '{0, 0, 0, 0}') FROM effects)`

// readEvents measures the lag of the events since then, which no API tells. It waits for the last
// ones, for a bounded time.
func readEvents(ctx context.Context, databaseURL string, since time.Time) (*published, error) {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return nil, fmt.Errorf("measure events: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for deadline := time.Now().Add(eventsTimeout); ; _ = wait.Pause(ctx, eventsAgain) {
		e, lags := &published{}, [4]float64{}
		err := conn.QueryRow(ctx, eventsSQL, since, effective).Scan(&e.Written, &e.Outstanding, &lags)
		e.Consumed = latency{lags[0], lags[1], lags[2], lags[3]}
		if err != nil || e.Outstanding == 0 || time.Now().After(deadline) {
			return e, err
		}
	}
}

// check wants all of them to have their effect, and 99 of 100 within a time, if they were measured.
func (e *published) check(within time.Duration) (found []books.Violation) {
	if e == nil {
		return nil
	}
	if e.Outstanding > 0 {
		found = append(found, books.Broken(inTime, "%d of %d were not published or had no effect after %s", e.Outstanding, e.Written, eventsTimeout))
	}
	if e.Consumed.P99 > report.Milliseconds(within) {
		found = append(found, books.Broken(inTime, "effective after %.0f ms (p99), more than %s", e.Consumed.P99, within))
	}
	return found
}
