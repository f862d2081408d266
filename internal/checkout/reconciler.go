package checkout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncepay/oncepay/internal/background"
)

const (
	// DefaultGrace is longer than a live handler needs whose payment is new: it waits for the
	// provider for 45 s at most, and then settles within SettleGrace. Taking the next attempt
	// earlier would fence handlers that are about to succeed, and their clients would have to
	// retry.
	DefaultGrace = time.Minute

	// DefaultBackoff spreads the requests to a provider that has problems.
	DefaultBackoff = 2 * time.Second

	// DefaultMaxBackoff is short enough to notice soon that the provider answers again.
	DefaultMaxBackoff = time.Minute

	// DefaultDeadline is enough for the grace and for some unknown outcomes. What is still
	// processing then needs a person to look at it.
	DefaultDeadline = 5 * time.Minute

	// reconcileInterval is short against the grace, and what it costs is a query on a small index.
	reconcileInterval = 5 * time.Second

	// reconcileBatch is how many payments and refunds a pass settles side by side; more would take
	// the connections that requests need.
	reconcileBatch = 10

	// askTimeout bounds all that a pass asks the provider about one payment or refund. With the
	// time to settle it is shorter than DefaultGrace, so that reconcilers don't fence each other.
	askTimeout = 45 * time.Second
)

// Unsettled counts payments and refunds that are processing, by the store's clock.
type Unsettled struct {
	Processing int
	Overdue    int           // of these, the ones that began longer ago than the deadline
	Oldest     time.Duration // since the oldest of these began; zero: there is none
}

// ReconcileStore is what a [Reconciler] needs of a store.
type ReconcileStore interface {
	CardPayments() Operations[NewPayment, Payment]
	CardRefunds() Operations[NewRefund, Refund]
	// TakeDue returns at most limit payments and refunds that are processing and that no attempt
	// works on: the time to which they were put off has come, or no attempt was taken for as long
	// as the grace. For each it MUST commit the next attempt, so that no other attempt can settle,
	// and it MUST skip locked ones. What it returns beside an error was taken.
	TakeDue(ctx context.Context, grace time.Duration, limit int) (Due, error)
	// CountUnsettled counts what is processing, and what of it is past the deadline.
	CountUnsettled(ctx context.Context, deadline time.Duration) (Unsettled, error)
}

// Due is what a [Reconciler] took.
type Due struct {
	Payments []Taken[Payment]
	Refunds  []Taken[Refund]
}

// ReconcilerOptions are the times of a reconciler. What is zero has a default.
type ReconcilerOptions struct {
	background.Schedule

	// Grace is how long an attempt is left to the handler that took it, unless the handler said
	// that the outcome is unknown. It is longer than a handler waits for the provider and settles.
	// Too short a grace is safe, but makes clients retry without need.
	Grace time.Duration

	// Backoff doubles with each attempt up to MaxBackoff, and an attempt with an unknown outcome is
	// followed by the next one after a random part of that.
	Backoff, MaxBackoff time.Duration

	// Deadline is how long a payment may be processing while the provider answers. What takes
	// longer is driven forward all the same, and is reported.
	Deadline time.Duration
}

// ReconcilerStats are figures for monitoring: what is unsettled in the store, and what this process
// did since its start.
type ReconcilerStats struct {
	Unsettled
	Settled   int64 // approved or declined
	Unknown   int64 // the provider did not say, and was to be asked again
	Overtaken int64 // another process had taken a newer attempt, or had settled
}

// Reconciler finishes card payments and refunds whose handler is gone or did not learn their
// outcome. It only goes forward: it sends the same request with the same provider key again, which
// moves the money at most once for as long as the provider remembers the key, and looks the request
// up after that. It settles what the provider answers under the client's key, where a retry finds
// the answer. Every replica runs one; it is safe for concurrent use.
type Reconciler struct {
	*background.Periodic
	store                       ReconcileStore
	options                     ReconcilerOptions
	payments                    kind[NewPayment, Payment]
	refunds                     kind[NewRefund, Refund]
	encode                      Encode
	settled, unknown, overtaken atomic.Int64
}

// NewReconciler makes a reconciler. The answers it keeps are encoded like those of a handler.
func NewReconciler(store ReconcileStore, gateway Gateway, encode Encode, options ReconcilerOptions) *Reconciler {
	options.Grace = cmp.Or(options.Grace, DefaultGrace)
	options.Backoff = cmp.Or(options.Backoff, DefaultBackoff)
	options.MaxBackoff = cmp.Or(options.MaxBackoff, DefaultMaxBackoff)
	options.Deadline = cmp.Or(options.Deadline, DefaultDeadline)
	options.Schedule = options.Schedule.Or(reconcileInterval, reconcileBatch)
	r := &Reconciler{store: store, options: options, encode: encode,
		payments: cardPayments(store.CardPayments(), gateway), refunds: cardRefunds(store.CardRefunds(), gateway)}
	r.Periodic = background.NewPeriodic("reconciler", options.Schedule, r.RunOnce)
	return r
}

// RunOnce takes a batch of what is due and drives all of it forward side by side. It returns how
// many it settled. An unknown outcome is no error.
func (r *Reconciler) RunOnce(ctx context.Context) (int, error) {
	due, err := r.store.TakeDue(ctx, r.options.Grace, r.options.Batch)
	drives := slices.Concat(drives(r, r.payments, due.Payments), drives(r, r.refunds, due.Refunds))
	errs := make([]error, len(drives))
	var settled atomic.Int64
	var group sync.WaitGroup
	for i, drive := range drives {
		group.Go(func() {
			done, err := drive(ctx)
			if errs[i] = err; done {
				settled.Add(1)
			}
		})
	}
	group.Wait()
	return int(settled.Load()), errors.Join(append(errs, err)...)
}

// Stats counts what is unsettled, in the store, and adds what this process did. What it did is
// right even if Stats returns an error.
func (r *Reconciler) Stats(ctx context.Context) (ReconcilerStats, error) {
	unsettled, err := r.store.CountUnsettled(ctx, r.options.Deadline)
	return ReconcilerStats{Unsettled: unsettled, Settled: r.settled.Load(), Unknown: r.unknown.Load(),
		Overtaken: r.overtaken.Load()}, err
}

// drives returns a function for each attempt that was taken: it asks the provider, and settles.
func drives[W any, T operation](r *Reconciler, k kind[W, T], taken []Taken[T]) []func(context.Context) (bool, error) {
	drives := make([]func(context.Context) (bool, error), len(taken))
	for i, t := range taken {
		t.Call.Encode = r.encode
		drives[i] = func(ctx context.Context) (bool, error) { return drive(ctx, r, k, t) }
	}
	return drives
}

// drive asks the provider and settles, and reports whether it did. What it learned is written down
// even if the pass has been ended meanwhile.
func drive[W any, T operation](ctx context.Context, r *Reconciler, k kind[W, T], taken Taken[T]) (bool, error) {
	at, attempt := taken.Value.Common(), taken.Call.Claim.Attempt
	log := r.options.Log.With("kind", k.name, "id", at.ID, "attempt", attempt, "age", at.age())
	result := ask(ctx, k, taken)
	ctx, cancel := settling(ctx)
	defer cancel()
	if result.Outcome == OutcomeUnknown {
		r.unknown.Add(1)
		wait := r.backoff(attempt)
		r.report(ctx, log, at, wait, result.Cause)
		return false, failed("put off", k.name, at, k.store.PutOff(ctx, taken, result.ProviderID, wait))
	}
	answer, err := k.store.Settle(ctx, taken, result)
	switch {
	case overtaken(answer, err):
		r.overtaken.Add(1)
		return false, nil
	case err != nil:
		return false, failed("settle", k.name, at, err)
	}
	r.settled.Add(1)
	log.InfoContext(ctx, "reconciled", "outcome", result.Outcome)
	return true, nil
}

func ask[W any, T operation](ctx context.Context, k kind[W, T], taken Taken[T]) GatewayResult {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return k.send(ctx, taken)
}

// report logs an unknown outcome, as an error once it is past the deadline.
func (r *Reconciler) report(ctx context.Context, log *slog.Logger, at Operation, wait time.Duration, cause error) {
	level, message := slog.LevelWarn, "outcome still unknown"
	if at.age() > r.options.Deadline {
		level, message = slog.LevelError, "outcome unknown past the deadline"
	}
	log.Log(ctx, level, message, "again_in", wait, "error", cause)
}

// backoff is the time until the next attempt: a random part of a time that doubles, so that many
// operations are not retried together.
func (r *Reconciler) backoff(attempt int32) time.Duration {
	ceiling := r.options.Backoff
	for ; attempt > 1 && ceiling < r.options.MaxBackoff; attempt-- {
		ceiling *= 2
	}
	return rand.N(max(1, min(ceiling, r.options.MaxBackoff)))
}

func failed(doing, kind string, at Operation, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s %s: %w", doing, kind, at.ID, err)
}
