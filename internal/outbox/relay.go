package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

const (
	// DefaultPoll is how often a relay looks by itself, in case it was not woken:
	// the net keeps the lag under a second. A look costs one short query.
	DefaultPoll = 500 * time.Millisecond

	// DefaultLease is how long events wait for a relay that was killed. It is ten
	// times what publishing and marking take when the broker is at its slowest.
	DefaultLease = 10 * time.Second

	// DefaultBatch keeps a pass far shorter than its lease, and a stopping
	// replica from having to wait.
	DefaultBatch = 100

	// DefaultMaxAttempts is some two minutes of refusals: enough for a
	// deployment that mends the cause.
	DefaultMaxAttempts = 10

	// markTimeout bounds telling the store what became of a batch. It also bounds
	// how much longer Stop takes.
	markTimeout = 5 * time.Second
)

var (
	// refusedBackoff spreads the attempts to publish one event.
	refusedBackoff = backoff{base: time.Second, limit: time.Minute}

	// troubleBackoff spreads a relay's attempts while the broker or the database
	// is away. Its limit bounds how late anybody notices that it is back.
	troubleBackoff = backoff{base: 100 * time.Millisecond, limit: 3 * time.Second}
)

// RelayConfig tunes a relay. What is zero takes its default.
type RelayConfig struct {
	Poll        time.Duration
	Lease       time.Duration
	Batch       int
	MaxAttempts int
	Logger      *slog.Logger // default: slog.Default()
}

func (c RelayConfig) withDefaults() RelayConfig {
	if c.Poll == 0 {
		c.Poll = DefaultPoll
	}
	if c.Lease == 0 {
		c.Lease = DefaultLease
	}
	if c.Batch == 0 {
		c.Batch = DefaultBatch
	}
	if c.MaxAttempts == 0 {
		c.MaxAttempts = DefaultMaxAttempts
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// Relay publishes the events of the outbox. Any number of them may run.
type Relay struct {
	service
	store     Store
	publisher Publisher
	cfg       RelayConfig
	woken     chan struct{}

	published, refused, troubles atomic.Int64
}

// NewRelay makes a relay, to be started.
func NewRelay(store Store, publisher Publisher, cfg RelayConfig) *Relay {
	return &Relay{store: store, publisher: publisher, cfg: cfg.withDefaults(), woken: make(chan struct{}, 1)}
}

// Start starts the relay, once, and returns at once. It runs until the context
// ends or Stop is called.
func (r *Relay) Start(ctx context.Context) { r.start(ctx, r.run) }

// Stop lets the relay finish what it has claimed and waits for it: not longer
// than the lease and a few seconds. It may be called at any time, also twice.
func (r *Relay) Stop() { r.stop() }

// RelayStats is what a relay did, and what is left.
type RelayStats struct {
	Backlog
	Published int64 // events since the relay was made
	Refused   int64 // attempts that were the event's fault
	Troubles  int64 // passes that failed because the broker or the database was away
}

// Stats reads the counters, and the backlog from the store. On an error the
// counters are right nevertheless.
func (r *Relay) Stats(ctx context.Context) (RelayStats, error) {
	stats := RelayStats{Published: r.published.Load(), Refused: r.refused.Load(), Troubles: r.troubles.Load()}
	var err error
	if stats.Backlog, err = r.store.Backlog(ctx); err != nil {
		return stats, fmt.Errorf("measure the outbox: %w", err)
	}
	return stats, nil
}

func (r *Relay) run(ctx context.Context) {
	var listener sync.WaitGroup
	defer listener.Wait()
	listener.Go(func() { r.listen(ctx) })

	for failures := 0; ctx.Err() == nil; {
		claimed, err := r.runOnce(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			failures++
			r.troubles.Add(1)
			pause := troubleBackoff.pause(failures)
			r.cfg.Logger.WarnContext(ctx, "outbox: events can't be published now", "error", err, "retry_in", pause)
			sleep(ctx, pause)
		case claimed == 0:
			failures = 0
			r.wait(ctx)
		default: // the next events of the same subjects may be due
			failures = 0
		}
	}
}

// listen is woken by the store, again and again.
func (r *Relay) listen(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		heard := false
		err := r.store.Listen(ctx, func() {
			heard = true
			r.wake()
		})
		if ctx.Err() != nil {
			return
		}
		if heard {
			failures = 0
		}
		failures++
		pause := troubleBackoff.pause(failures)
		r.cfg.Logger.WarnContext(ctx, "outbox: not woken by new events, polling", "error", err, "retry_in", pause)
		sleep(ctx, pause)
	}
}

// wake never blocks: one pass finds all that is there.
func (r *Relay) wake() {
	select {
	case r.woken <- struct{}{}:
	default:
	}
}

func (r *Relay) wait(ctx context.Context) {
	timer := time.NewTimer(r.cfg.Poll)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-r.woken:
	case <-timer.C:
	}
}

// runOnce claims a batch, publishes it outside of any transaction, and marks
// what became of it. It gives the number of events that it claimed. What is
// claimed is brought to an end also when the context ends.
func (r *Relay) runOnce(ctx context.Context) (int, error) {
	claim := uuid.New()
	// By the time that others may take them, we must have stopped publishing. The
	// lease begins later than this, when the store gives it.
	deadline := time.Now().Add(r.cfg.Lease)
	events, err := r.store.Claim(ctx, claim, r.cfg.Batch, r.cfg.Lease)
	if err != nil {
		return 0, fmt.Errorf("claim events: %w", err)
	}
	if len(events) == 0 {
		return 0, nil
	}
	ctx = context.WithoutCancel(ctx)
	publishCtx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	errs := r.publisher.Publish(publishCtx, events)

	ctx, cancel = context.WithTimeout(ctx, markTimeout)
	defer cancel()
	return len(events), r.settle(ctx, claim, events, errs)
}

// settle marks what became of claimed events, and releases those for which the
// broker was not there.
func (r *Relay) settle(ctx context.Context, claim uuid.UUID, events []Event, errs []error) error {
	var published []int64
	var refused []Refusal
	var unavailable error
	for i, event := range events {
		switch err := errs[i]; {
		case err == nil:
			published = append(published, event.Position)
		case errors.Is(err, ErrUnavailable):
			unavailable = err
		default:
			refused = append(refused, r.refuse(ctx, event, err))
		}
	}
	r.published.Add(int64(len(published)))
	r.refused.Add(int64(len(refused)))
	if len(published) > 0 {
		if err := r.store.MarkPublished(ctx, claim, published); err != nil {
			return fmt.Errorf("mark events as published: %w", err)
		}
	}
	for _, refusal := range refused {
		if err := r.store.MarkRefused(ctx, claim, refusal); err != nil {
			return fmt.Errorf("mark an event as refused: %w", err)
		}
	}
	if unavailable == nil {
		return nil
	}
	if err := r.store.Release(ctx, claim); err != nil {
		return fmt.Errorf("release events: %w", errors.Join(err, unavailable))
	}
	return fmt.Errorf("publish events: %w", unavailable)
}

// refuse decides when an event is tried again, if ever.
func (r *Relay) refuse(ctx context.Context, event Event, err error) Refusal {
	attempts := event.Attempts + 1
	refusal := Refusal{Position: event.Position, Reason: err.Error(),
		Pause: refusedBackoff.pause(attempts), Dead: attempts >= r.cfg.MaxAttempts}
	r.cfg.Logger.ErrorContext(ctx, "outbox: event refused", "error", err, "position", event.Position,
		"event_id", event.ID, "type", event.Type, "attempts", attempts, "dead", refusal.Dead)
	return refusal
}
