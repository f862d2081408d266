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

	"github.com/google/uuid"

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

	// reconcileInterval is short against the grace, and what it costs is two queries on small
	// indexes.
	reconcileInterval = 5 * time.Second

	// reconcileBatch is how many payments, and how many refunds, a pass settles side by side; more
	// would take the connections that requests need.
	reconcileBatch = 5

	// askTimeout bounds all that a pass asks the provider about one payment or refund. With the
	// time to settle it is shorter than DefaultGrace, so that reconcilers don't fence each other.
	askTimeout = 45 * time.Second
)

// Taken is an attempt that a reconciler has taken, with the call that began it. Of the call's claim
// key, fingerprint and operation are known: settling needs no more.
type Taken[T any] struct {
	Call  Call
	Value T
}

// Unsettled counts payments and refunds that are processing, by the store's clock.
type Unsettled struct {
	Processing int
	Overdue    int           // of these, the ones that began longer ago than the deadline
	Oldest     time.Duration // since the oldest of these began; zero: there is none
}

// ReconcileStore is what a [Reconciler] needs of a store.
type ReconcileStore interface {
	// TakePayments returns at most limit card payments that are processing and that no attempt
	// works on: the time to which they were put off has come, or no attempt was taken for as long
	// as the grace. For each it MUST commit the next attempt, so that no other attempt can settle,
	// and it MUST skip locked ones.
	TakePayments(ctx context.Context, grace time.Duration, limit int) ([]Taken[Payment], error)
	// SettleCardPayment and PutOffPayment are those of [Store].
	PutOffPayment(ctx context.Context, account uuid.UUID, payment Payment, wait time.Duration) error
	SettleCardPayment(ctx context.Context, call Call, payment Payment, result GatewayResult, render Render[Payment]) (Answer, error)

	// TakeRefunds, PutOffRefund and SettleCardRefund do the same for refunds.
	TakeRefunds(ctx context.Context, grace time.Duration, limit int) ([]Taken[Refund], error)
	PutOffRefund(ctx context.Context, account uuid.UUID, refund Refund, wait time.Duration) error
	SettleCardRefund(ctx context.Context, call Call, refund Refund, result GatewayResult, render Render[Refund]) (Answer, error)

	// CountUnsettled counts what is processing, and what of it is past the deadline.
	CountUnsettled(ctx context.Context, deadline time.Duration) (Unsettled, error)
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
	payments                    line[Payment]
	refunds                     line[Refund]
	settled, unknown, overtaken atomic.Int64
}

// NewReconciler makes a reconciler. The answers it keeps are rendered like those of a handler.
func NewReconciler(store ReconcileStore, gateway Gateway, renderPayment Render[Payment], renderRefund Render[Refund],
	options ReconcilerOptions,
) *Reconciler {
	options.Grace = cmp.Or(options.Grace, DefaultGrace)
	options.Backoff = cmp.Or(options.Backoff, DefaultBackoff)
	options.MaxBackoff = cmp.Or(options.MaxBackoff, DefaultMaxBackoff)
	options.Deadline = cmp.Or(options.Deadline, DefaultDeadline)
	options.Schedule = options.Schedule.Or(reconcileInterval, reconcileBatch)
	r := &Reconciler{store: store, options: options,
		payments: line[Payment]{
			take:   store.TakePayments,
			ask:    func(ctx context.Context, p Payment) GatewayResult { return sendCharge(ctx, gateway, p) },
			settle: store.SettleCardPayment, render: renderPayment, putOff: store.PutOffPayment,
			describe: func(p Payment) attempt { return attempt{"payment", p.ID, p.Attempt, p.UpdatedAt.Sub(p.CreatedAt)} },
		},
		refunds: line[Refund]{
			take:   store.TakeRefunds,
			ask:    func(ctx context.Context, f Refund) GatewayResult { return sendRefund(ctx, gateway, f) },
			settle: store.SettleCardRefund, render: renderRefund, putOff: store.PutOffRefund,
			describe: func(f Refund) attempt { return attempt{"refund", f.ID, f.Attempt, f.UpdatedAt.Sub(f.CreatedAt)} },
		}}
	r.Periodic = background.NewPeriodic("reconciler", options.Schedule, r.RunOnce)
	return r
}

// RunOnce takes a batch of what is due and drives all of it forward side by side. It returns how
// many it settled. An unknown outcome is no error.
func (r *Reconciler) RunOnce(ctx context.Context) (int, error) {
	payments, paymentsErr := due(ctx, r, r.payments)
	refunds, refundsErr := due(ctx, r, r.refunds)
	drives := slices.Concat(payments, refunds)
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
	return int(settled.Load()), errors.Join(append(errs, paymentsErr, refundsErr)...)
}

// Stats counts what is unsettled, in the store, and adds what this process did. What it did is
// right even if Stats returns an error.
func (r *Reconciler) Stats(ctx context.Context) (ReconcilerStats, error) {
	unsettled, err := r.store.CountUnsettled(ctx, r.options.Deadline)
	return ReconcilerStats{Unsettled: unsettled, Settled: r.settled.Load(), Unknown: r.unknown.Load(),
		Overtaken: r.overtaken.Load()}, err
}

// line is how one kind of operation is driven forward.
type line[T any] struct {
	take     func(ctx context.Context, grace time.Duration, limit int) ([]Taken[T], error)
	ask      func(ctx context.Context, value T) GatewayResult
	settle   func(ctx context.Context, call Call, value T, result GatewayResult, render Render[T]) (Answer, error)
	render   Render[T]
	putOff   putOff[T]
	describe func(T) attempt
}

// putOff makes an operation due after the wait.
type putOff[T any] func(ctx context.Context, account uuid.UUID, value T, wait time.Duration) error

// attempt is what the log says of an operation.
type attempt struct {
	kind   string
	id     uuid.UUID
	number int32
	age    time.Duration // of the operation when the attempt was taken, by the store's clock
}

// due takes the next attempts of what is due, and returns what is to be done for each.
func due[T any](ctx context.Context, r *Reconciler, l line[T]) ([]func(context.Context) (bool, error), error) {
	taken, err := l.take(ctx, r.options.Grace, r.options.Batch)
	drives := make([]func(context.Context) (bool, error), len(taken))
	for i, t := range taken {
		drives[i] = func(ctx context.Context) (bool, error) { return drive(ctx, r, l, t) }
	}
	return drives, err
}

// drive asks the provider and settles, and reports whether it did. What it learned is written down
// even if the pass has been ended meanwhile.
func drive[T any](ctx context.Context, r *Reconciler, l line[T], taken Taken[T]) (bool, error) {
	result := ask(ctx, l, taken.Value)
	ctx, cancel := settling(ctx)
	defer cancel()
	at := l.describe(taken.Value)
	if result.Outcome == OutcomeUnknown {
		r.unknown.Add(1)
		wait := r.backoff(at.number)
		r.report(ctx, at, wait, result.Cause)
		return false, failed("put off", at, l.putOff(ctx, taken.Call.Account, taken.Value, wait))
	}
	answer, err := l.settle(ctx, taken.Call, taken.Value, result, l.render)
	switch {
	case overtaken(answer, err):
		r.overtaken.Add(1)
		return false, nil
	case err != nil:
		return false, failed("settle", at, err)
	}
	r.settled.Add(1)
	r.options.Log.InfoContext(ctx, "reconciled", "kind", at.kind, "id", at.id, "attempt", at.number,
		"outcome", result.Outcome, "age", at.age)
	return true, nil
}

func ask[T any](ctx context.Context, l line[T], value T) GatewayResult {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return l.ask(ctx, value)
}

// report logs an unknown outcome, as an error once it is past the deadline.
func (r *Reconciler) report(ctx context.Context, at attempt, wait time.Duration, cause error) {
	level, message := slog.LevelWarn, "outcome still unknown"
	if at.age > r.options.Deadline {
		level, message = slog.LevelError, "outcome unknown past the deadline"
	}
	r.options.Log.Log(ctx, level, message, "kind", at.kind, "id", at.id, "attempt", at.number, "age", at.age,
		"again_in", wait, "error", cause)
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

func failed(doing string, at attempt, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s %s: %w", doing, at.kind, at.id, err)
}
