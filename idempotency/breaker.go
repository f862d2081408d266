package idempotency

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Defaults of a [Breaker].
const (
	// DefaultBreakerFailures is more than a few lost connections cause, and few
	// enough that an outage is noticed by the first requests that meet it.
	DefaultBreakerFailures = 5
	// DefaultBreakerPause is short against the time that people notice, and long
	// against the timeout that each look at a silent server costs somebody.
	DefaultBreakerPause = 500 * time.Millisecond
)

// ErrBreakerOpen says that a [Breaker] didn't ask its store, so nothing has
// happened there. It comes together with [ErrUnavailable].
var ErrBreakerOpen = errors.New("idempotency: breaker open")

// Breaker is a [Store] in front of one that is reached over a network. While
// that one can't answer, requests learn so at once instead of by a timeout each.
//
// After some acquisitions in a row without an answer it is open: Acquire and
// Lookup fail at once, with [ErrUnavailable] and [ErrBreakerOpen], for a pause.
// Then one Acquire goes through as a probe while the others still fail. An
// answer to it closes the breaker, and otherwise there is another pause.
// [ErrLost] and [ErrCorrupt] are answers, and a caller who gave up says nothing.
//
// Extend, Complete and Release always go through: whoever holds a key, or may
// hold it as the answer to Acquire was lost, must be able to say so. Only Acquire
// opens and closes the breaker. A Breaker is safe for concurrent use.
type Breaker struct {
	Store // for the steps of owners

	failures int
	pause    time.Duration
	log      *slog.Logger

	mu       sync.Mutex
	failed   int // acquisitions in a row that had no answer
	open     bool
	opened   time.Time
	probeAt  time.Time // while open: not before
	probing  bool
	openings int // so far
}

var (
	_ Notifier = (*Breaker)(nil)
	_ Reader   = (*Breaker)(nil)
)

// BreakerOption configures a [Breaker].
type BreakerOption func(*Breaker)

// WithBreakerFailures replaces [DefaultBreakerFailures], after how many
// acquisitions in a row without an answer the breaker opens; at least one.
func WithBreakerFailures(n int) BreakerOption {
	return func(b *Breaker) { b.failures = n }
}

// WithBreakerPause replaces [DefaultBreakerPause], for how long nobody is let
// through once the breaker has opened, and after each probe that failed.
func WithBreakerPause(d time.Duration) BreakerOption {
	return func(b *Breaker) { b.pause = d }
}

// WithBreakerLogger replaces slog.Default for a line each time the breaker opens
// or closes.
func WithBreakerLogger(log *slog.Logger) BreakerOption {
	return func(b *Breaker) { b.log = log }
}

// NewBreaker puts a closed breaker in front of store.
func NewBreaker(store Store, opts ...BreakerOption) *Breaker {
	b := &Breaker{Store: store, failures: DefaultBreakerFailures, pause: DefaultBreakerPause, log: slog.Default()}
	for _, opt := range opts {
		opt(b)
	}
	return b
}

// Open says whether the store is taken to be away right now.
func (b *Breaker) Open() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open
}

// Acquire implements [Store].
func (b *Breaker) Acquire(ctx context.Context, pending Record, lease time.Duration) (existing *Record, err error) {
	admitted, ok := b.admit()
	if !ok {
		return nil, fmt.Errorf("acquire: %w: %w", ErrUnavailable, ErrBreakerOpen)
	}
	err = ErrUnavailable // should the store panic
	defer func() { b.learn(ctx, admitted, err) }()
	return b.Store.Acquire(ctx, pending, lease)
}

// Lookup implements [Reader].
func (b *Breaker) Lookup(ctx context.Context, scope, key string) (*Record, error) {
	if b.refuses() {
		return nil, fmt.Errorf("look up: %w: %w", ErrUnavailable, ErrBreakerOpen)
	}
	return Lookup(ctx, b.Store, scope, key)
}

// Watch implements [Notifier].
func (b *Breaker) Watch(scope, key string) (changed <-chan struct{}, stop func()) {
	return Watch(b.Store, scope, key)
}

func (b *Breaker) refuses() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pausing()
}

func (b *Breaker) pausing() bool { return b.open && (b.probing || time.Now().Before(b.probeAt)) }

// admit lets an acquisition through, or not, and says how often the breaker had
// opened by then.
func (b *Breaker) admit() (openings int, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pausing() {
		return 0, false
	}
	b.probing = b.open
	return b.openings, true
}

// learn takes an answer into account. One that was asked for before the breaker
// last opened is no news; while it is open, all others are the probe's.
func (b *Breaker) learn(ctx context.Context, admitted int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case admitted != b.openings:
	case err == nil, errors.Is(err, ErrLost), errors.Is(err, ErrCorrupt):
		b.answered()
	case errors.Is(ctx.Err(), context.Canceled):
		b.probing = false // the next one may
	default:
		b.unanswered(err)
	}
}

func (b *Breaker) answered() {
	b.failed = 0
	if !b.open {
		return
	}
	b.open, b.probing = false, false
	b.log.Info("idempotency: breaker closed, the store answers again", "open_for", time.Since(b.opened).String())
}

func (b *Breaker) unanswered(err error) {
	if b.failed++; b.failed < b.failures {
		return
	}
	b.probeAt, b.probing = time.Now().Add(b.pause), false
	if b.open {
		return
	}
	b.open, b.opened = true, time.Now()
	b.openings++
	b.log.Warn("idempotency: breaker open, the store does not answer", "failures", b.failed, "probe_every", b.pause.String(), "error", err)
}
