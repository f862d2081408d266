package timeline

import (
	"context"
	"time"

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

// LossReporter names what a failover is known to have lost: the events in the stream that the
// outbox does not have, each of which tells of a change.
type LossReporter struct {
	background.Task
	timeline *Timeline
	stream   outbox.NewestReader
	outbox   outbox.Keeper
}

// NewLossReporter compares the outbox with the stream whenever a timeline begins.
func NewLossReporter(t *Timeline, stream outbox.NewestReader, keeper outbox.Keeper) *LossReporter {
	return &LossReporter{timeline: t, stream: stream, outbox: keeper}
}

// Start runs it until Stop.
func (r *LossReporter) Start(ctx context.Context) { r.Task.Start(ctx, r.run) }

// Stop returns when it has ended.
func (r *LossReporter) Stop() { r.Task.Stop() }

func (r *LossReporter) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case begun := <-r.timeline.begun:
			r.report(ctx, begun)
		}
	}
}

func (r *LossReporter) report(ctx context.Context, begun postgres.Beginning) {
	var lost []outbox.Event
	err := wait.For(ctx, lossPatience, lossInterval, func(ctx context.Context) (err error) {
		lost, err = outbox.FindLost(ctx, r.stream, r.outbox, begun.Published)
		return err
	})
	if err != nil {
		r.timeline.log.Error("can't look for events that PostgreSQL has lost", "timeline", begun.String(), "after", begun.Published, "error", err)
		return
	}
	r.timeline.lost.Add(int64(len(lost)))
	for _, event := range lost[:min(len(lost), maxLossLines)] {
		r.timeline.log.Error("PostgreSQL has lost an event and what it tells of", "type", event.Type, "subject", event.Subject,
			"account", event.AccountID, "event_id", event.ID, "position", event.Position, "data", string(event.Data))
	}
	r.timeline.log.Warn("PostgreSQL's new timeline was compared with the stream", "timeline", begun.String(), "after", begun.Published,
		"events_lost", len(lost))
}
