package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// DefaultTakeover is after how long an event that somebody took and did not
	// finish is taken over: longer than a batch takes. Too early does no harm,
	// as the effect happens once.
	DefaultTakeover = 30 * time.Second

	// consumerBlock is how long a read waits for events. It also bounds how much
	// longer Stop takes, as the client can't break off a read.
	consumerBlock = time.Second

	// consumerBatch is how many events are taken at once.
	consumerBatch = 32
)

// Handler makes the effect of an event. It MUST note the event's ID in the
// transaction of the effect, and report false and have no effect when it was
// noted already.
type Handler func(ctx context.Context, event Event) (first bool, err error)

// Subscription says what a consumer group does with which events.
type Subscription struct {
	Group  string
	Types  []string // of events to handle; others are passed over
	Handle Handler
}

// ConsumerConfig tunes a consumer. What is zero takes its default.
type ConsumerConfig struct {
	Takeover time.Duration // default: DefaultTakeover
	Logger   *slog.Logger  // default: slog.Default()
}

// Consumer handles the events of a Redis stream as a member of a consumer group
// (Redis manual, "Redis Streams"). Any number of them may run.
type Consumer struct {
	service
	client  redis.UniversalClient
	stream  string
	name    string
	sub     Subscription
	cfg     ConsumerConfig
	takenAt time.Time // when all there was had been taken over

	handled, repeated, failed, unreadable atomic.Int64
}

// NewConsumer makes a consumer of [DefaultStream], to be started, by a client
// without retries and with the timeouts of [SetTimeouts]. Its name must be
// unique in the group and survive a restart, as that of a replica does.
func NewConsumer(client redis.UniversalClient, name string, sub Subscription, cfg ConsumerConfig) *Consumer {
	if cfg.Takeover == 0 {
		cfg.Takeover = DefaultTakeover
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	cfg.Logger = cfg.Logger.With("group", sub.Group)
	return &Consumer{client: client, stream: DefaultStream, name: name, sub: sub, cfg: cfg}
}

// Start starts the consumer, once, and returns at once. It runs until the
// context ends or Stop is called.
func (c *Consumer) Start(ctx context.Context) { c.start(ctx, c.run) }

// Stop waits for the event that is being handled, and for a read of up to a
// second. It may be called at any time, also twice.
func (c *Consumer) Stop() { c.stop() }

// ConsumerStats is what a consumer did since it was made.
type ConsumerStats struct {
	Handled    int64 // events that had their effect
	Repeated   int64 // events whose effect was there already
	Failed     int64 // attempts that failed and will be made again
	Unreadable int64 // entries of the stream that are no events
}

// Stats reads the counters.
func (c *Consumer) Stats() ConsumerStats {
	return ConsumerStats{Handled: c.handled.Load(), Repeated: c.repeated.Load(),
		Failed: c.failed.Load(), Unreadable: c.unreadable.Load()}
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
		sleep(ctx, pause)
	}
}

// runOnce takes over what others left, if it is time to, and handles a batch of
// new events, for which it waits up to block.
func (c *Consumer) runOnce(ctx context.Context, block time.Duration) error {
	err := c.takeOver(ctx)
	if err == nil {
		err = c.readNew(ctx, block)
	}
	if isGroupLost(err) {
		return c.createGroup(ctx)
	}
	return err
}

// takeOver handles the events that were taken for too long by whomever, be it
// by ourselves in an attempt that failed.
func (c *Consumer) takeOver(ctx context.Context) error {
	if time.Since(c.takenAt) < c.cfg.Takeover/3 {
		return nil
	}
	for start := "0-0"; ; {
		entries, next, err := c.client.XAutoClaim(ctx, &redis.XAutoClaimArgs{Stream: c.stream, Group: c.sub.Group,
			Consumer: c.name, MinIdle: c.cfg.Takeover, Start: start, Count: consumerBatch}).Result()
		if err != nil {
			return fmt.Errorf("take over events: %w", err)
		}
		if err := c.handleAll(ctx, entries); err != nil {
			return err
		}
		if next == "0-0" {
			c.takenAt = time.Now()
			return nil
		}
		start = next
	}
}

func (c *Consumer) readNew(ctx context.Context, block time.Duration) error {
	streams, err := c.client.XReadGroup(ctx, &redis.XReadGroupArgs{Group: c.sub.Group, Consumer: c.name,
		Streams: []string{c.stream, ">"}, Count: consumerBatch, Block: block}).Result()
	if errors.Is(err, redis.Nil) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read events: %w", err)
	}
	for _, stream := range streams {
		if err := c.handleAll(ctx, stream.Messages); err != nil {
			return err
		}
	}
	return nil
}

// handleAll handles all entries, also after one has failed, so that it doesn't
// hold up the others. It stops early only when the context ends; what is not
// handled is taken over later.
func (c *Consumer) handleAll(ctx context.Context, entries []redis.XMessage) error {
	var errs []error
	for _, entry := range entries {
		if ctx.Err() != nil {
			return errors.Join(append(errs, ctx.Err())...)
		}
		if err := c.handleEntry(ctx, entry); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// handleEntry acknowledges an entry after its effect. When that fails, it comes
// again and is found to be a repetition.
func (c *Consumer) handleEntry(ctx context.Context, entry redis.XMessage) error {
	if err := c.apply(context.WithoutCancel(ctx), entry); err != nil {
		c.failed.Add(1)
		return err
	}
	if err := c.client.XAck(ctx, c.stream, c.sub.Group, entry.ID).Err(); err != nil {
		return fmt.Errorf("acknowledge an event: %w", err)
	}
	return nil
}

func (c *Consumer) apply(ctx context.Context, entry redis.XMessage) error {
	event, err := decode(entry.Values)
	if err != nil { // it will be no better next time
		c.unreadable.Add(1)
		c.cfg.Logger.ErrorContext(ctx, "outbox: entry of the stream is no event", "entry", entry.ID, "error", err)
		return nil
	}
	if !slices.Contains(c.sub.Types, event.Type) {
		return nil
	}
	first, err := c.sub.Handle(ctx, event)
	switch {
	case err != nil:
		return fmt.Errorf("handle %s %s: %w", event.Type, event.ID, err)
	case first:
		c.handled.Add(1)
	default:
		c.repeated.Add(1)
	}
	return nil
}

// isGroupLost says that the stream was never there, or was lost with its groups.
func isGroupLost(err error) bool {
	return redis.HasErrorPrefix(err, "NOGROUP") || redis.HasErrorPrefix(err, "UNBLOCKED")
}

// createGroup lets the group begin with the first entry of the stream.
func (c *Consumer) createGroup(ctx context.Context) error {
	err := c.client.XGroupCreateMkStream(ctx, c.stream, c.sub.Group, "0").Err()
	if err != nil && !redis.HasErrorPrefix(err, "BUSYGROUP") { // somebody else was faster
		return fmt.Errorf("create consumer group %s: %w", c.sub.Group, err)
	}
	return nil
}
