package breaker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/breaker"
	"github.com/oncepay/oncepay/idempotency/internal/faulty"
	"github.com/oncepay/oncepay/idempotency/memstore"
	"github.com/oncepay/oncepay/idempotency/storetest"
)

var errStore = fmt.Errorf("%w: connection refused", idempotency.ErrUnavailable)

// guarded is a breaker in front of a store that can be made to fail.
type guarded struct {
	*breaker.Breaker
	t     *testing.T
	store *faulty.Store
	logs  *bytes.Buffer
}

func guard(t *testing.T, opts ...breaker.Option) *guarded {
	t.Helper()
	g := &guarded{t: t, store: &faulty.Store{Store: memstore.New()}, logs: &bytes.Buffer{}}
	opts = append(opts, breaker.WithLogger(slog.New(slog.NewTextHandler(g.logs, nil))))
	g.Breaker = breaker.New(g.store, opts...)
	return g
}

func (g *guarded) record() idempotency.Record {
	return idempotency.Record{Key: string(idempotency.NewOwner()), Owner: idempotency.NewOwner(), Status: idempotency.StatusInProgress}
}

func (g *guarded) acquire() error {
	_, err := g.Acquire(g.t.Context(), g.record(), time.Minute)
	return err
}

// requireAsked says that so many acquisitions have reached the store.
func (g *guarded) requireAsked(times int) {
	g.t.Helper()
	require.Len(g.t, g.store.Taken(), times)
}

// requireRefused says that the breaker alone answers.
func (g *guarded) requireRefused() {
	g.t.Helper()
	before := len(g.store.Taken())
	err := g.acquire()
	require.ErrorIs(g.t, err, idempotency.ErrUnavailable)
	require.ErrorIs(g.t, err, idempotency.ErrNotSent)
	g.requireAsked(before)
}

// trip has the store fail until the breaker is open.
func (g *guarded) trip() {
	g.t.Helper()
	g.store.Fail = faulty.Always(errStore)
	for range breaker.DefaultFailures {
		require.False(g.t, g.Open())
		require.NotErrorIs(g.t, g.acquire(), idempotency.ErrNotSent)
	}
	require.True(g.t, g.Open())
}

func TestBreaker_IsAStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) storetest.Bench {
		return storetest.Bench{Store: breaker.New(memstore.New())}
	})
	changed, stop := breaker.New(memstore.New()).Watch("", "key")
	stop()
	require.NotNil(t, changed)
	existing, err := breaker.New(memstore.New()).Repair(t.Context(), idempotency.Record{Key: "key", Status: idempotency.StatusInProgress}, time.Minute)
	require.NoError(t, err)
	require.Nil(t, existing)
}

func TestBreaker_OfAPlainStoreIsAStore(t *testing.T) {
	t.Parallel()
	plain := func() idempotency.Store { return struct{ idempotency.Store }{memstore.New()} }
	storetest.Run(t, func(*testing.T) storetest.Bench {
		return storetest.Bench{Store: breaker.New(plain())}
	})
	b := breaker.New(plain())
	changed, stop := b.Watch("", "key")
	stop()
	require.Nil(t, changed)
	_, err := b.Lookup(t.Context(), "", "key")
	require.ErrorIs(t, err, idempotency.ErrUnavailable)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	_, err = b.Repair(t.Context(), idempotency.Record{}, time.Minute)
	require.ErrorIs(t, err, idempotency.ErrCorrupt)
	require.ErrorIs(t, err, errors.ErrUnsupported)
}

func TestBreaker_OpensAndCloses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := guard(t)
		g.trip()
		for range 3 { // pauses, each ended by one probe that fails
			asked := len(g.store.Taken())
			g.requireRefused()
			time.Sleep(breaker.DefaultPause - time.Millisecond)
			g.requireRefused()
			time.Sleep(time.Millisecond)
			require.NotErrorIs(t, g.acquire(), idempotency.ErrNotSent)
			g.requireAsked(asked + 1)
		}
		require.True(t, g.Open())
		g.store.Fail = nil
		g.requireRefused()
		time.Sleep(breaker.DefaultPause)
		for range 3 {
			require.NoError(t, g.acquire())
			require.False(t, g.Open())
		}
		g.trip() // from the beginning
		require.Equal(t, 2, strings.Count(g.logs.String(), "level=WARN"), g.logs)
		require.Equal(t, 1, strings.Count(g.logs.String(), "level=INFO"), g.logs)
		require.Contains(t, g.logs.String(), "open_for=2s")
		require.Contains(t, g.logs.String(), "connection refused")
	})
}

func TestBreaker_HasOptions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, breaker.WithFailures(1), breaker.WithPause(time.Hour))
		g.store.Fail = faulty.Always(errStore)
		require.Error(t, g.acquire())
		time.Sleep(time.Hour - time.Nanosecond)
		g.requireRefused()
		time.Sleep(time.Nanosecond)
		require.NotErrorIs(t, g.acquire(), idempotency.ErrNotSent)
	})
}

// TestBreaker_StaysClosed has acquisitions fail, more of them than it takes to
// open, that are answers, or have answers between them, or say nothing.
func TestBreaker_StaysClosed(t *testing.T) {
	t.Parallel()
	gone, leave := context.WithCancel(t.Context())
	leave()
	for name, tt := range map[string]struct {
		ctx  context.Context
		fail func(i int) error
	}{
		"lost":      {t.Context(), func(int) error { return idempotency.ErrLost }},
		"corrupt":   {t.Context(), func(int) error { return idempotency.ErrCorrupt }},
		"cancelled": {gone, func(int) error { return errStore }},
		"now and then": {t.Context(), func(i int) error {
			if i%breaker.DefaultFailures == 0 {
				return nil
			}
			return errStore
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := guard(t)
			for i := range 4 * breaker.DefaultFailures {
				g.store.Fail = faulty.Always(tt.fail(i))
				_, err := g.Acquire(tt.ctx, g.record(), time.Minute)
				require.NotErrorIs(t, err, idempotency.ErrNotSent)
				require.False(t, g.Open())
			}
		})
	}
}

// TestBreaker_CountsTimeouts is for stores without timeouts of their own: the
// middleware's ends their steps.
func TestBreaker_CountsTimeouts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := guard(t)
		g.store.Fail = func(ctx context.Context, _ string) error {
			<-ctx.Done()
			return errStore
		}
		for range breaker.DefaultFailures {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := g.Acquire(ctx, g.record(), time.Minute)
			cancel()
			require.ErrorIs(t, err, idempotency.ErrUnavailable)
		}
		require.True(t, g.Open())
	})
}

// TestBreaker_SendsOneProbe keeps the probe waiting for its answer.
func TestBreaker_SendsOneProbe(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer error
		gone   bool
		open   bool
		next   func(*guarded) // what becomes of the next one
	}{
		"answered":   {nil, false, false, func(g *guarded) { require.NoError(g.t, g.acquire()) }},
		"corrupt":    {idempotency.ErrCorrupt, false, false, func(g *guarded) { require.NoError(g.t, g.acquire()) }},
		"unanswered": {errStore, false, true, (*guarded).requireRefused},
		"given up":   {errStore, true, true, func(g *guarded) { require.NoError(g.t, g.acquire()) }}, // which is a probe, too
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := guard(t)
				g.trip()
				g.store.Fail = func(context.Context, string) error {
					time.Sleep(time.Hour)
					return tt.answer
				}
				time.Sleep(breaker.DefaultPause)
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				probe := make(chan error)
				go func() {
					_, err := g.Acquire(ctx, g.record(), time.Minute)
					probe <- err
				}()
				synctest.Wait()
				g.requireRefused()
				_, err := g.Lookup(t.Context(), "", "key")
				require.ErrorIs(t, err, idempotency.ErrNotSent)
				time.Sleep(30 * time.Minute)
				g.requireRefused()
				if tt.gone {
					leave()
				}
				require.ErrorIs(t, <-probe, tt.answer)
				g.store.Fail = nil
				require.Equal(t, tt.open, g.Open())
				tt.next(g)
			})
		})
	}
}

// TestBreaker_SurvivesAPanic has the probe's store panic, which must not leave
// everybody waiting for its answer.
func TestBreaker_SurvivesAPanic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := guard(t)
		g.trip()
		time.Sleep(breaker.DefaultPause)
		g.store.Fail = func(context.Context, string) error { panic("store") }
		require.Panics(t, func() { _ = g.acquire() })
		g.store.Fail = nil
		g.requireRefused()
		time.Sleep(breaker.DefaultPause)
		require.NoError(t, g.acquire())
	})
}

// TestBreaker_IgnoresOldResults has acquisitions that began before a change answer
// after it.
func TestBreaker_IgnoresOldResults(t *testing.T) {
	t.Parallel()
	for name, old := range map[string]error{"a failure": errStore, "an answer": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := guard(t)
				g.store.Fail = func(context.Context, string) error {
					time.Sleep(time.Second)
					return old
				}
				var late sync.WaitGroup
				for range 2 * breaker.DefaultFailures {
					late.Go(func() { _ = g.acquire() })
				}
				synctest.Wait()
				g.trip()
				if old != nil {
					g.store.Fail = nil
					time.Sleep(breaker.DefaultPause)
					require.NoError(t, g.acquire())
				}
				open := g.Open()
				late.Wait()
				require.Equal(t, open, g.Open())
			})
		})
	}
}

func TestBreaker_SendsTheStepsOfOwners(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := guard(t)
		held, kept := g.record(), g.record()
		for _, r := range []idempotency.Record{held, kept} {
			_, err := g.Acquire(t.Context(), r, time.Minute)
			require.NoError(t, err)
		}
		g.trip()
		require.ErrorIs(t, g.Extend(t.Context(), held, time.Minute), errStore)
		g.store.Fail = nil
		require.NoError(t, g.Extend(t.Context(), held, time.Minute))
		kept.Status, kept.Response.StatusCode = idempotency.StatusCompleted, http.StatusCreated
		require.NoError(t, g.Complete(t.Context(), kept, time.Minute))
		require.NoError(t, g.Release(t.Context(), held))
		g.requireRefused()
	})
}

func TestBreaker_LooksUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		b := breaker.New(&faulty.Store{Store: store, Fail: faulty.On(faulty.Acquire, errStore)}, breaker.WithLogger(slog.New(slog.DiscardHandler)))
		_, err := b.Lookup(t.Context(), "", "key")
		require.NoError(t, err)
		for range breaker.DefaultFailures {
			_, err := b.Acquire(t.Context(), idempotency.Record{}, time.Minute)
			require.ErrorIs(t, err, idempotency.ErrUnavailable)
		}
		_, err = idempotency.Lookup(t.Context(), b, "", "key")
		require.ErrorIs(t, err, idempotency.ErrNotSent)
		require.ErrorIs(t, err, idempotency.ErrUnavailable)
		time.Sleep(breaker.DefaultPause)
		_, err = b.Lookup(t.Context(), "", "key")
		require.NoError(t, err)
		require.True(t, b.Open(), "reading says nothing about writing")
	})
}

// TestBreaker_LimitsTheCostOfOutages has a crowd ask a store that comes and goes, and counts
// what the outages cost: those that were under way, and then one for each pause.
func TestBreaker_LimitsTheCostOfOutages(t *testing.T) {
	t.Parallel()
	const crowd, outage, timeout = 16, 10 * time.Second, 100 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		g := guard(t)
		var away atomic.Bool
		var cost, served atomic.Int64
		g.store.Fail = func(context.Context, string) error {
			if away.Load() {
				cost.Add(1)
				time.Sleep(timeout)
				return errStore
			}
			return nil
		}
		ctx, end := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range crowd {
			all.Go(func() {
				for ctx.Err() == nil {
					if g.acquire() == nil {
						served.Add(1)
					}
					time.Sleep(1 + rand.N(10*time.Millisecond))
				}
			})
		}
		for range 2 {
			time.Sleep(time.Second)
			cost.Store(0)
			away.Store(true)
			time.Sleep(outage)
			away.Store(false)
			require.LessOrEqual(t, cost.Load(), int64(crowd+outage/breaker.DefaultPause))
			time.Sleep(breaker.DefaultPause + timeout + 10*time.Millisecond)
			require.False(t, g.Open(), "it is back")
			before := served.Load()
			time.Sleep(time.Second)
			require.Greater(t, served.Load()-before, int64(10*crowd))
		}
		end()
		all.Wait()
	})
}

// TestBreaker_IsSafeForConcurrentUse is for the race detector, on real time.
func TestBreaker_IsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	b := breaker.New(&flaky{memstore.New()}, breaker.WithFailures(1), breaker.WithPause(time.Microsecond),
		breaker.WithLogger(slog.New(slog.DiscardHandler)))
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 500 {
				_, _ = b.Acquire(t.Context(), idempotency.Record{Key: string(idempotency.NewOwner())}, time.Minute)
				_, _ = b.Lookup(t.Context(), "", "key")
				b.Open()
			}
		})
	}
	all.Wait()
}

// flaky fails half of the time.
type flaky struct{ *memstore.Store }

func (s *flaky) Acquire(ctx context.Context, r idempotency.Record, lease time.Duration) (*idempotency.Record, error) {
	if rand.N(2) == 0 {
		return nil, errStore
	}
	return s.Store.Acquire(ctx, r, lease)
}

func TestNew_PanicsOnNonsense(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(){
		"no store":    func() { breaker.New(nil) },
		"no failures": func() { breaker.New(memstore.New(), breaker.WithFailures(0)) },
		"no pause":    func() { breaker.New(memstore.New(), breaker.WithPause(0)) },
		"no logger":   func() { breaker.New(memstore.New(), breaker.WithLogger(nil)) },
	} {
		require.Panics(t, make, name)
	}
}
