package app

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/oncepay/oncepay/internal/background"
	"github.com/oncepay/oncepay/internal/outbox"
	"github.com/oncepay/oncepay/internal/postgres"
	"github.com/oncepay/oncepay/internal/wait"
)

const (
	// lossPatience bounds the search for events that PostgreSQL has lost: Redis may be away, too.
	lossPatience = 2 * time.Minute

	// lossInterval is the pause between its tries.
	lossInterval = time.Second

	// maxLossLines bounds what is logged of them one by one.
	maxLossLines = 1000
)

// timeline is that of the PostgreSQL that the replica has connected to last.
type timeline struct {
	current atomic.Pointer[postgres.Timeline] // nil before the first connection
	begun   chan postgres.Beginning           // what is to be searched for losses
	lost    atomic.Int64                      // events that were found lost
}

// name is what records in Redis belong to.
func (t *timeline) name() string {
	if current := t.current.Load(); current != nil {
		return current.String()
	}
	return ""
}

// number is for a metric; 0 before the first connection.
func (t *timeline) number() float64 {
	if current := t.current.Load(); current != nil {
		return float64(current.Number)
	}
	return 0
}

// collectors are its metrics.
func (t *timeline) collectors() []prometheus.Collector {
	return []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "postgres_timeline", Help: "PostgreSQL's timeline: a failover or a restore begins another one.",
		}, t.number),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "events_lost_total", Help: "Events in the stream that PostgreSQL has lost, with what they tell of.",
		}, func() float64 { return float64(t.lost.Load()) }),
	}
}

// followTimeline makes records of the timelines before count as absent, because PostgreSQL may have
// lost what they tell of. It decides on each key anew.
func (a *App) followTimeline(now postgres.Timeline) {
	if before := a.timeline.current.Swap(&now); before != nil && *before != now {
		a.log.Error("PostgreSQL was failed over or restored: it decides on every key, records in Redis of before are not believed",
			"timeline", now.String(), "before", before.String())
	}
}

func (a *App) beginTimeline(begun postgres.Beginning) {
	select {
	case a.timeline.begun <- begun:
	default: // one is enough: the search goes back to the older cursor
	}
}

// lossReporter names what a failover is known to have lost: the events in the stream that the
// outbox does not have, each of which tells of a change.
type lossReporter struct {
	background.Task
	*App
	stream outbox.NewestReader
	outbox outbox.Keeper
}

// Start implements worker.
func (r *lossReporter) Start(ctx context.Context) { r.Task.Start(ctx, r.run) }

// Stop implements worker.
func (r *lossReporter) Stop() { r.Task.Stop() }

func (r *lossReporter) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case begun := <-r.timeline.begun:
			r.report(ctx, begun)
		}
	}
}

func (r *lossReporter) report(ctx context.Context, begun postgres.Beginning) {
	var lost []outbox.Event
	err := wait.For(ctx, lossPatience, lossInterval, func(ctx context.Context) (err error) {
		lost, err = outbox.FindLost(ctx, r.stream, r.outbox, begun.Published)
		return err
	})
	if err != nil {
		r.log.Error("can't look for events that PostgreSQL has lost", "timeline", begun.String(), "after", begun.Published, "error", err)
		return
	}
	r.timeline.lost.Add(int64(len(lost)))
	for _, event := range lost[:min(len(lost), maxLossLines)] {
		r.log.Error("PostgreSQL has lost an event and what it tells of", "type", event.Type, "subject", event.Subject,
			"account", event.AccountID, "event_id", event.ID, "position", event.Position, "data", string(event.Data))
	}
	r.log.Warn("PostgreSQL's new timeline was compared with the stream", "timeline", begun.String(), "after", begun.Published,
		"events_lost", len(lost))
}
