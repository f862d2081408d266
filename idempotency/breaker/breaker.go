// Package breaker puts a circuit breaker in front of an [idempotency.Store] that is
// reached over a network. While that store does not answer, requests learn it at
// once instead of each waiting for a timeout:
//
//	store := breaker.New(redisstore.New(client))
package breaker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/oncepay/oncepay/idempotency"
)

// Defaults of a [Breaker].
const (
	// DefaultFailures is more than a few lost connections cause, and low enough that the
	// first requests of an outage open the breaker.
	DefaultFailures = 5
	// DefaultPause is short enough for the delay after an outage to go unnoticed, and long
	// compared with the timeout of a probe.
	DefaultPause = 500 * time.Millisecond
)

// Breaker is an [idempotency.Store], [idempotency.Watcher], [idempotency.Reader] and
// [idempotency.Repairer]. It is safe for concurrent use.
//
// After several Acquires in a row without an answer the breaker opens: for a pause, Acquire
// and Lookup fail at once with [idempotency.ErrNotSent]. Then one Acquire is sent as a
// probe, while the others still fail. If the probe is answered, the breaker closes; if not,
// another pause follows. [idempotency.ErrLost] and [idempotency.ErrCorrupt] are answers. An
// Acquire whose caller cancelled it does not count. A Lookup is no probe: it may have less
// time than an Acquire. Between a pause and the next probe Lookups are sent, and each waits
// for its own timeout.
//
// Extend, Complete and Release are always sent: an owner that holds a key, or may hold it
// because the answer to its Acquire was lost, must be able to finish. Only Acquire opens and
// closes the breaker.
type Breaker struct {
	store    idempotency.Store
	failures int
	pause    time.Duration
	log      *slog.Logger

	mu       sync.Mutex
	failed   int // Acquires in a row without an answer
	open     bool
	opened   time.Time
	probeAt  time.Time // no probe before this, while open
	probing  bool
	openings int // how often it opened so far
}

var (
	_ idempotency.Store    = (*Breaker)(nil)
	_ idempotency.Watcher  = (*Breaker)(nil)
	_ idempotency.Reader   = (*Breaker)(nil)
	_ idempotency.Repairer = (*Breaker)(nil)
)

// Option configures a [Breaker].
type Option func(*Breaker)

// WithFailures sets how many Acquires in a row without an answer open the breaker. The
// default is [DefaultFailures].
func WithFailures(n int) Option {
	return func(b *Breaker) { b.failures = n }
}

// WithPause sets how long no Acquire is sent after the breaker opened, and after each failed
// probe. The default is [DefaultPause].
func WithPause(d time.Duration) Option {
	return func(b *Breaker) { b.pause = d }
}

// WithLogger sets where the breaker logs that it opened or closed. The default is
// slog.Default.
func WithLogger(log *slog.Logger) Option {
	return func(b *Breaker) { b.log = log }
}

// New returns a closed breaker in front of store. It panics if store or the logger is nil,
// failures is less than one or the pause is not positive.
func New(store idempotency.Store, opts ...Option) *Breaker {
	b := &Breaker{store: store, failures: DefaultFailures, pause: DefaultPause, log: slog.Default()}
	for _, opt := range opts {
		opt(b)
	}
	if b.store == nil || b.failures < 1 || b.pause <= 0 || b.log == nil {
		panic(fmt.Sprintf("breaker: store %v, failures %d, pause %s, logger %v", b.store, b.failures, b.pause, b.log))
	}
	return b
}

// Open reports whether the breaker is open: the store is taken to be unreachable.
func (b *Breaker) Open() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open
}

// Acquire implements [idempotency.Store].
func (b *Breaker) Acquire(ctx context.Context, pending idempotency.Record, lease time.Duration) (existing *idempotency.Record, err error) {
	openings, ok := b.allow()
	if !ok {
		return nil, fmt.Errorf("acquire: breaker open: %w", idempotency.ErrNotSent)
	}
	err = idempotency.ErrUnavailable // what is recorded if the store panics
	defer func() { b.record(ctx, openings, err) }()
	return b.store.Acquire(ctx, pending, lease)
}

// Extend implements [idempotency.Store].
func (b *Breaker) Extend(ctx context.Context, pending idempotency.Record, lease time.Duration) error {
	return b.store.Extend(ctx, pending, lease)
}

// Complete implements [idempotency.Store].
func (b *Breaker) Complete(ctx context.Context, done idempotency.Record, ttl time.Duration) error {
	return b.store.Complete(ctx, done, ttl)
}

// Release implements [idempotency.Store].
func (b *Breaker) Release(ctx context.Context, pending idempotency.Record) error {
	return b.store.Release(ctx, pending)
}

// Lookup implements [idempotency.Reader].
func (b *Breaker) Lookup(ctx context.Context, scope, key string) (*idempotency.Record, error) {
	if b.refuses() {
		return nil, fmt.Errorf("look up: breaker open: %w", idempotency.ErrNotSent)
	}
	return idempotency.Lookup(ctx, b.store, scope, key)
}

// Repair implements [idempotency.Repairer]. It is always sent: the store has just answered.
func (b *Breaker) Repair(ctx context.Context, pending idempotency.Record, lease time.Duration) (*idempotency.Record, error) {
	return idempotency.Repair(ctx, b.store, pending, lease)
}

// Watch implements [idempotency.Watcher].
func (b *Breaker) Watch(scope, key string) (changed <-chan struct{}, stop func()) {
	return idempotency.Watch(b.store, scope, key)
}

func (b *Breaker) refuses() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pausing()
}

func (b *Breaker) pausing() bool { return b.open && (b.probing || time.Now().Before(b.probeAt)) }

// allow reports whether an Acquire may be sent, and how often the breaker has opened so far.
func (b *Breaker) allow() (openings int, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pausing() {
		return 0, false
	}
	b.probing = b.open
	return b.openings, true
}

// record counts the result of an Acquire. Results of Acquires that were sent before the
// breaker last opened do not count; while it is open, only the probe's result remains.
func (b *Breaker) record(ctx context.Context, openings int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case openings != b.openings:
	case err == nil, errors.Is(err, idempotency.ErrLost), errors.Is(err, idempotency.ErrCorrupt):
		b.answered()
	case errors.Is(ctx.Err(), context.Canceled):
		b.probing = false // the next Acquire is the probe
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
