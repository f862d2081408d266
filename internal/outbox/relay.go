package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/oncepay/oncepay/internal/background"
)

const (
	// DefaultPoll is how often the relay with the lease looks by itself: events of other replicas
	// do not wake it. A look is one short transaction.
	DefaultPoll = 30 * time.Millisecond

	// DefaultLease is how long events wait for a relay that was killed. It is longer than a pass
	// takes when the database and the stream are at their slowest.
	DefaultLease = 10 * time.Second

	// DefaultBatch keeps a pass far shorter than its lease.
	DefaultBatch = 1000

	// upkeepInterval is how often the groups' cursors are moved and lost events are looked for.
	upkeepInterval = time.Second

	// hurriedLooks is how often within that interval a full stream is looked at and trimmed: a
	// long backlog fills it several times a second. That costs the database nothing.
	hurriedLooks = 20

	// advanceTimeout bounds telling the store what is published, and how much longer Stop takes.
	advanceTimeout = 5 * time.Second
)

// troubleBackoff spreads a relay's attempts while the stream or the database is away. Its limit
// bounds how late anybody notices that it is back.
var troubleBackoff = backoff{base: 100 * time.Millisecond, limit: 3 * time.Second}

// RelayConfig tunes a relay. What is zero takes its default.
type RelayConfig struct {
	Groups []Group // that must have every event
	Poll   time.Duration
	Lease  time.Duration
	Batch  int
	Upkeep time.Duration // default: a second
	MaxLen int64         // of the stream; default: DefaultMaxLen
	Logger *slog.Logger  // default: slog.Default()
}

func (c RelayConfig) withDefaults() RelayConfig {
	c.Poll = cmp.Or(c.Poll, DefaultPoll)
	c.Lease = cmp.Or(c.Lease, DefaultLease)
	c.Batch = cmp.Or(c.Batch, DefaultBatch)
	c.Upkeep = cmp.Or(c.Upkeep, upkeepInterval)
	c.MaxLen = cmp.Or(c.MaxLen, DefaultMaxLen)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

// Relay publishes the events of the outbox, and publishes again what a consumer group did not get.
// Any number of them may run; the one that holds the lease works.
type Relay struct {
	task   background.Task
	store  Store
	stream Stream
	cfg    RelayConfig
	owner  uuid.UUID
	woken  chan struct{}

	// Of the goroutine that runs:
	leased    time.Time // until when the lease lasts at least; zero: not held
	published int64     // the position up to which events are published
	read      int64     // the position up to which there is nothing else to publish
	pace      pace      // of passes with events
	kept      time.Time // when upkeep was done
	looked    time.Time // when the state of the stream was asked for
	warned    time.Time // when it was last said that the stream is full
	room      int64     // how many entries the stream may grow by until the next upkeep
	marks     map[string]mark

	publications, republications, troubles atomic.Int64
}

// NewRelay makes a relay, to be started.
func NewRelay(store Store, stream Stream, cfg RelayConfig) *Relay {
	return &Relay{store: store, stream: stream, cfg: cfg.withDefaults(), owner: uuid.New(),
		woken: make(chan struct{}, 1), marks: map[string]mark{}}
}

// Start starts the relay, once, and returns at once. It runs until the context ends or Stop is
// called.
func (r *Relay) Start(ctx context.Context) { r.task.Start(ctx, r.run) }

// Stop lets the relay finish its pass, releases the lease and waits for both: not longer than the
// lease and a few seconds. It may be called at any time, also twice.
func (r *Relay) Stop() { r.task.Stop() }

// Wake says that there are new events. It never blocks, and may be called often: one pass finds all
// that is there.
func (r *Relay) Wake() {
	select {
	case r.woken <- struct{}{}:
	default:
	}
}

// RelayStats is what a relay did, and what is left.
type RelayStats struct {
	Backlog
	Lags        map[string]Lag // by consumer group
	Published   int64          // events since the relay was made
	Republished int64          // events that were published again, because a group did not get them
	Troubles    int64          // passes that failed
}

// Stats reads the counters, and the rest from the store. The counters are right even if it returns
// an error.
func (r *Relay) Stats(ctx context.Context) (RelayStats, error) {
	stats := RelayStats{Published: r.publications.Load(), Republished: r.republications.Load(),
		Troubles: r.troubles.Load(), Lags: map[string]Lag{}}
	var err error
	if stats.Backlog, err = r.store.Backlog(ctx); err != nil {
		return stats, fmt.Errorf("measure the outbox: %w", err)
	}
	for _, group := range r.cfg.Groups {
		if stats.Lags[group.Name], err = r.store.Lag(ctx, group); err != nil {
			return stats, fmt.Errorf("measure consumer group %s: %w", group.Name, err)
		}
	}
	return stats, nil
}

func (r *Relay) run(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		n, err := r.runOnce(ctx)
		switch {
		case errors.Is(err, ErrLeased):
			failures = 0
			background.Sleep(ctx, r.standby())
		case err != nil && ctx.Err() == nil:
			failures++
			r.troubles.Add(1)
			r.release(ctx) // another replica may reach what this one can't
			pause := troubleBackoff.pause(failures)
			r.cfg.Logger.WarnContext(ctx, "outbox: events can't be published now", "error", err, "retry_in", pause)
			background.Sleep(ctx, pause)
		case n < r.cfg.Batch:
			failures = 0
			r.wait(ctx, n)
		}
	}
	r.release(ctx)
}

// standby is how long a relay without the lease waits, about a second: less than the lease of one
// that died.
func (r *Relay) standby() time.Duration { return min(32*r.cfg.Poll, r.cfg.Lease/4) }

// wait waits after a pass with n events until it is time for the next one.
func (r *Relay) wait(ctx context.Context, n int) {
	if n > 0 {
		background.Sleep(ctx, r.pace.after(n, time.Now()))
	}
	timer := time.NewTimer(r.cfg.Poll)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-r.woken:
	case <-timer.C:
	}
}

// runOnce publishes a batch and returns its size. What is begun is brought to an end also when the
// context ends.
func (r *Relay) runOnce(ctx context.Context) (n int, err error) {
	defer func() {
		if err != nil {
			r.leased = time.Time{}
		}
	}()
	if err := r.lease(ctx); err != nil {
		return 0, err
	}
	if r.isLookDue() {
		if err := r.keepUp(ctx); err != nil {
			return 0, err
		}
	}
	if r.room <= 0 {
		return 0, nil
	}
	events, last, err := r.store.Read(ctx, r.read, min(r.cfg.Batch, int(r.room)))
	if err != nil {
		return 0, fmt.Errorf("read the outbox: %w", err)
	}
	if len(events) > 0 {
		err = r.publish(context.WithoutCancel(ctx), events)
	}
	if err == nil {
		r.read = last
	}
	return len(events), err
}

func (r *Relay) isLookDue() bool {
	return time.Since(r.kept) >= r.cfg.Upkeep || r.room <= 0 && time.Since(r.looked) >= r.cfg.Upkeep/hurriedLooks
}

// lease takes the lease, or renews it when half of it is over.
func (r *Relay) lease(ctx context.Context) error {
	if time.Until(r.leased) > r.cfg.Lease/2 {
		return nil
	}
	held := !r.leased.IsZero()
	// The lease begins later than this, when the store grants it.
	until := time.Now().Add(r.cfg.Lease)
	published, err := r.store.Lease(ctx, r.owner, r.cfg.Lease)
	if err != nil {
		return fmt.Errorf("lease the outbox: %w", err)
	}
	if !held || published != r.published { // another relay worked, or an operator moved the cursor
		r.published, r.read = published, published
		r.kept, r.room = time.Time{}, 0
		clear(r.marks)
	}
	r.leased = until
	return nil
}

// publish publishes events, outside of any transaction, and moves the cursor. A relay that was
// paused in between must not publish after its lease.
func (r *Relay) publish(ctx context.Context, events []Event) error {
	publishCtx, cancel := context.WithDeadline(ctx, r.leased)
	defer cancel()
	if err := r.stream.Publish(publishCtx, events); err != nil {
		return fmt.Errorf("publish events: %w", err)
	}
	r.publications.Add(int64(len(events)))
	r.room -= int64(len(events))

	ctx, cancel = context.WithTimeout(ctx, advanceTimeout)
	defer cancel()
	last := events[len(events)-1].Position
	until := time.Now().Add(r.cfg.Lease)
	if err := r.store.Advance(ctx, r.owner, r.published, last, r.cfg.Lease); err != nil {
		return fmt.Errorf("mark events as published: %w", err)
	}
	r.published, r.leased = last, until
	return nil
}

// release ends the lease. If that fails, the lease ends by itself.
func (r *Relay) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), advanceTimeout)
	defer cancel()
	_ = r.store.Release(ctx, r.owner)
}
