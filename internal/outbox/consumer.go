package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oncepay/oncepay/internal/background"
)

const (
	// DefaultTakeover is after how long an event that another consumer took and did not finish is
	// taken over: longer than a batch takes. Too early does no harm, as the effect happens once.
	DefaultTakeover = 30 * time.Second

	// consumerBlock is how long a read waits for events. It also bounds how much longer Stop takes,
	// as the client can't interrupt a read.
	consumerBlock = time.Second

	// MaxAttempts is how often an event is refused before it waits for a human: some four minutes,
	// enough for a deployment that mends the cause.
	MaxAttempts = 10

	// consumerBatch is how many events have their effect in one transaction at most.
	consumerBatch = 500
)

// Subscription says what a consumer group does with which events.
type Subscription struct {
	Group

	// Handle makes the effects of events, all or none, and returns how many events had theirs now.
	// It MUST record each event in the transaction of its effect, and have no effect for an event
	// that is recorded or lies at or before the group's cursor. An error that wraps ErrRefused says
	// that one of the events is at fault.
	Handle func(ctx context.Context, events []Event) (first int, err error)

	// Refuse records a dead letter: an event that Handle refuses on its own. It returns how often
	// that happened.
	Refuse func(ctx context.Context, event Event, reason string) (attempts int, err error)
}

// ConsumerConfig tunes a consumer. What is zero takes its default.
type ConsumerConfig struct {
	Takeover time.Duration // default: DefaultTakeover
	Logger   *slog.Logger  // default: slog.Default()
}

// Consumer handles the events of a Redis stream as a member of a consumer group (Redis manual,
// "Redis Streams"). Any number of them may run.
type Consumer struct {
	task    background.Task
	client  redis.UniversalClient
	stream  string
	name    string
	sub     Subscription
	cfg     ConsumerConfig
	takenAt time.Time // when all there was had been taken over
	behind  bool      // whether this consumer may have taken events that it has not handled

	handled, repeated, failed, refused, unreadable atomic.Int64
}

// NewConsumer makes a consumer of [DefaultStream], to be started, by a client without retries and
// with the timeouts of [SetTimeouts]. Its name must be unique in the group and survive a restart,
// as that of a replica does.
func NewConsumer(client redis.UniversalClient, name string, sub Subscription, cfg ConsumerConfig) *Consumer {
	cfg.Takeover = cmp.Or(cfg.Takeover, DefaultTakeover)
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default()).With("group", sub.Name)
	return &Consumer{client: client, stream: DefaultStream, name: name, sub: sub, cfg: cfg, behind: true}
}

// Start starts the consumer, once, and returns at once. It runs until the context ends or Stop is
// called.
func (c *Consumer) Start(ctx context.Context) { c.task.Start(ctx, c.run) }

// Stop waits for the events that are being handled, and for a read of up to a second. It may be
// called at any time, also twice.
func (c *Consumer) Stop() { c.task.Stop() }

// ConsumerStats is what a consumer did since it was made.
type ConsumerStats struct {
	Handled    int64 // events that had their effect
	Repeated   int64 // events whose effect was there already
	Failed     int64 // attempts that failed and will be made again
	Refused    int64 // attempts that failed because of the event
	Unreadable int64 // entries of the stream that are no events
}

// Stats reads the counters.
func (c *Consumer) Stats() ConsumerStats {
	return ConsumerStats{Handled: c.handled.Load(), Repeated: c.repeated.Load(), Failed: c.failed.Load(),
		Refused: c.refused.Load(), Unreadable: c.unreadable.Load()}
}

func (c *Consumer) run(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		err := c.runOnce(ctx, consumerBlock)
		if err == nil || ctx.Err() != nil {
			failures = 0
			continue
		}
		failures++
		pause := troubleBackoff.pause(failures)
		c.cfg.Logger.WarnContext(ctx, "outbox: events can't be consumed now", "error", err, "retry_in", pause)
		background.Sleep(ctx, pause)
	}
}

// runOnce handles what others left, if it is time to, then what this consumer left, then a batch of
// new events, for which it waits up to block.
func (c *Consumer) runOnce(ctx context.Context, block time.Duration) error {
	err := c.takeOver(ctx)
	for err == nil && c.behind {
		err = c.readOwn(ctx)
	}
	if err == nil {
		_, err = c.read(ctx, ">", block)
	}
	if isGroupLost(err) {
		return c.createGroup(ctx)
	}
	return err
}

// takeOver handles events that a consumer took too long ago and has not finished.
func (c *Consumer) takeOver(ctx context.Context) error {
	if time.Since(c.takenAt) < c.cfg.Takeover/3 {
		return nil
	}
	for start := "0-0"; ; {
		entries, next, err := c.client.XAutoClaim(ctx, &redis.XAutoClaimArgs{Stream: c.stream, Group: c.sub.Name,
			Consumer: c.name, MinIdle: c.cfg.Takeover, Start: start, Count: consumerBatch}).Result()
		if err != nil {
			return fmt.Errorf("take over events: %w", err)
		}
		if err := c.handle(ctx, entries); err != nil {
			return err
		}
		if next == "0-0" {
			c.takenAt = time.Now()
			return nil
		}
		start = next
	}
}

// readOwn handles events that this consumer took before and did not finish.
func (c *Consumer) readOwn(ctx context.Context) error {
	n, err := c.read(ctx, "0", -1)
	c.behind = err != nil || n > 0
	return err
}

// read takes a batch after an ID and handles it. A negative block does not wait.
func (c *Consumer) read(ctx context.Context, after string, block time.Duration) (n int, err error) {
	streams, err := c.client.XReadGroup(ctx, &redis.XReadGroupArgs{Group: c.sub.Name, Consumer: c.name,
		Streams: []string{c.stream, after}, Count: consumerBatch, Block: block}).Result()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read events: %w", err)
	}
	for _, stream := range streams {
		n += len(stream.Messages)
		err = errors.Join(err, c.handle(ctx, stream.Messages))
	}
	return n, err
}

// handle makes the effects of a batch and acknowledges it. When that fails, it comes again and is
// found to be a repetition.
func (c *Consumer) handle(ctx context.Context, entries []redis.XMessage) error {
	if len(entries) == 0 {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	done, err := c.apply(ctx, entries)
	if err != nil {
		c.behind = true
	}
	if len(done) == 0 {
		return err
	}
	if ackErr := c.client.XAck(ctx, c.stream, c.sub.Name, done...).Err(); ackErr != nil {
		c.behind = true
		err = errors.Join(err, fmt.Errorf("acknowledge events: %w", ackErr))
	}
	return err
}

// apply makes the effects of a batch and returns the IDs of the entries that are done with. Where
// an event of the batch is refused, each has its effect alone.
func (c *Consumer) apply(ctx context.Context, entries []redis.XMessage) (done []string, err error) {
	var events []Event
	var ids []string
	for _, entry := range entries {
		event, concerns := c.decode(ctx, entry)
		if !concerns {
			done = append(done, entry.ID)
			continue
		}
		events, ids = append(events, event), append(ids, entry.ID)
	}
	if len(events) == 0 {
		return done, nil
	}
	err = c.applyAll(ctx, events)
	if !errors.Is(err, ErrRefused) {
		if err == nil {
			done = append(done, ids...)
		}
		return done, err
	}
	err = nil
	for i, event := range events {
		if failed := c.applyOne(ctx, event); failed != nil {
			err = errors.Join(err, failed)
		} else {
			done = append(done, ids[i])
		}
	}
	return done, err
}

// decode reads an entry and says whether it is an event that concerns the group. What is no event
// now will be none next time.
func (c *Consumer) decode(ctx context.Context, entry redis.XMessage) (event Event, concerns bool) {
	event, err := decode(entry.Values)
	if err != nil {
		c.unreadable.Add(1)
		c.cfg.Logger.ErrorContext(ctx, "outbox: entry of the stream is no event", "entry", entry.ID, "error", err)
		return Event{}, false
	}
	return event, slices.Contains(c.sub.Types, event.Type)
}

func (c *Consumer) applyAll(ctx context.Context, events []Event) error {
	first, err := c.sub.Handle(ctx, events)
	if err != nil {
		if !errors.Is(err, ErrRefused) {
			c.failed.Add(int64(len(events)))
		}
		return fmt.Errorf("handle %d events from %s %s on: %w", len(events), events[0].Type, events[0].ID, err)
	}
	c.handled.Add(int64(first))
	c.repeated.Add(int64(len(events) - first))
	return nil
}

// applyOne makes the effect of an event, or a dead letter of it if it is refused.
func (c *Consumer) applyOne(ctx context.Context, event Event) error {
	err := c.applyAll(ctx, []Event{event})
	if !errors.Is(err, ErrRefused) {
		return err
	}
	c.refused.Add(1)
	attempts, failed := c.sub.Refuse(ctx, event, err.Error())
	if failed != nil {
		return fmt.Errorf("record a dead letter: %w", failed)
	}
	c.cfg.Logger.ErrorContext(ctx, "outbox: event refused", "error", err, "position", event.Position,
		"event_id", event.ID, "type", event.Type, "attempts", attempts)
	return nil
}

// isGroupLost says that the stream was never there, or was lost with its groups.
func isGroupLost(err error) bool {
	return redis.HasErrorPrefix(err, "NOGROUP") || redis.HasErrorPrefix(err, "UNBLOCKED")
}

// createGroup lets the group begin with the first entry of the stream.
func (c *Consumer) createGroup(ctx context.Context) error {
	err := c.client.XGroupCreateMkStream(ctx, c.stream, c.sub.Name, "0").Err()
	if err != nil && !redis.HasErrorPrefix(err, "BUSYGROUP") { // another consumer was faster
		return fmt.Errorf("create consumer group %s: %w", c.sub.Name, err)
	}
	return nil
}
