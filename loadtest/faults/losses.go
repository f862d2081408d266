package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oncepay/oncepay/loadtest/faults/nemesis"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
)

const (
	// replayMargin is how much older than a loss the events are that are sent again: far more than the consumers can be behind.
	replayMargin = time.Minute
	// replayTries and replayAgain are for a database that is still recovering from another fault.
	replayTries = 5
	replayAgain = time.Second
)

// losses keeps what Redis held before each fault that makes it lose its data.
type losses struct {
	before []verify.Stream
	since  time.Time // the last one
	events int       // that were sent again
}

func loses(faults []*nemesis.Fault) bool {
	for _, f := range faults {
		if f.Loses {
			return true
		}
	}
	return false
}

// keepStream reads the event stream before it goes.
func (c *campaign) keepStream(ctx context.Context) error {
	reader, err := c.reader(ctx)
	if err != nil {
		return err
	}
	ids, err := reader.Stream(ctx)
	c.losses.before = append(c.losses.before, verify.Stream{Since: c.losses.since, IDs: ids})
	return err
}

// replay does what an operator does when Redis has lost its data: events that were published and perhaps not consumed are sent again.
func (c *campaign) replay(ctx context.Context, began time.Duration) error {
	since := (c.elapsed() - began + replayMargin).Round(time.Second)
	var err error
	for range replayTries {
		var told string
		if told, err = c.stack.Oncepay(ctx, "outbox", "replay", "--since", since.String()); err == nil {
			var n int
			if _, err := fmt.Sscanf(told, "%d events", &n); err != nil {
				return fmt.Errorf("replay events: %q: %w", told, err)
			}
			c.losses.events += n
			c.losses.since = time.Now()
			return nil
		}
		wait(ctx, replayAgain)
	}
	return errors.Join(fmt.Errorf("replay events: %w", err), ctx.Err())
}
