package idempotency_test

import (
	"bytes"
	"context"
	"errors"
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
	"github.com/oncepay/oncepay/idempotency/memstore"
	"github.com/oncepay/oncepay/idempotency/storetest"
)

// guarded is a breaker in front of a store that can be made to fail.
type guarded struct {
	*idempotency.Breaker
	t     *testing.T
	store *tappedStore
	logs  *bytes.Buffer
}

func guard(t *testing.T, opts ...idempotency.BreakerOption) *guarded {
	t.Helper()
	g := &guarded{t: t, store: &tappedStore{Store: memstore.New()}, logs: &bytes.Buffer{}}
	opts = append(opts, idempotency.WithBreakerLogger(slog.New(slog.NewTextHandler(g.logs, nil))))
	g.Breaker = idempotency.NewBreaker(g.store, opts...)
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
	require.Len(g.t, g.store.taken(), times)
}

// requireRefused says that the breaker alone answers.
func (g *guarded) requireRefused() {
	g.t.Helper()
	before := len(g.store.taken())
	err := g.acquire()
	require.ErrorIs(g.t, err, idempotency.ErrUnavailable)
	require.ErrorIs(g.t, err, idempotency.ErrBreakerOpen)
	g.requireAsked(before)
}

// trip has the store fail until the breaker is open.
func (g *guarded) trip() {
	g.t.Helper()
	g.store.fail = always(errStore)
	for range idempotency.DefaultBreakerFailures {
		require.False(g.t, g.Open())
		require.NotErrorIs(g.t, g.acquire(), idempotency.ErrBreakerOpen)
	}
	require.True(g.t, g.Open())
}

func TestBreakerIsAStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) storetest.Bench {
		return storetest.Bench{Store: idempotency.NewBreaker(memstore.New())}
	})
	changed, stop := idempotency.NewBreaker(memstore.New()).Watch("", "key")
	stop()
	require.NotNil(t, changed)
}

func TestBreakerOfAPlainStoreIsAStore(t *testing.T) {
	t.Parallel()
	plain := func() idempotency.Store { return struct{ idempotency.Store }{memstore.New()} }
	storetest.Run(t, func(*testing.T) storetest.Bench {
		return storetest.Bench{Store: idempotency.NewBreaker(plain())}
	})
	b := idempotency.NewBreaker(plain())
	changed, stop := b.Watch("", "key")
	stop()
	require.Nil(t, changed)
	_, err := b.Lookup(t.Context(), "", "key")
	require.ErrorIs(t, err, idempotency.ErrUnavailable)
	require.ErrorIs(t, err, errors.ErrUnsupported)
}

func TestBreakerOpensAndCloses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := guard(t)
		g.trip()
		for range 3 { // pauses, each ended by one probe that fails
			asked := len(g.store.taken())
			g.requireRefused()
			time.Sleep(idempotency.DefaultBreakerPause - time.Millisecond)
			g.requireRefused()
			time.Sleep(time.Millisecond)
			require.NotErrorIs(t, g.acquire(), idempotency.ErrBreakerOpen)
			g.requireAsked(asked + 1)
		}
		require.True(t, g.Open())
		g.store.fail = nil
		g.requireRefused()
		time.Sleep(idempotency.DefaultBreakerPause)
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

func TestBreakerOptions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, idempotency.WithBreakerFailures(1), idempotency.WithBreakerPause(time.Hour))
		g.store.fail = always(errStore)
		require.Error(t, g.acquire())
		time.Sleep(time.Hour - time.Nanosecond)
		g.requireRefused()
		time.Sleep(time.Nanosecond)
		require.NotErrorIs(t, g.acquire(), idempotency.ErrBreakerOpen)
	})
}

// TestBreakerStaysClosed has acquisitions fail, more of them than it takes to
// open, that are answers, or have answers between them, or say nothing.
func TestBreakerStaysClosed(t *testing.T) {
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
			if i%idempotency.DefaultBreakerFailures == 0 {
				return nil
			}
			return errStore
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := guard(t)
			for i := range 4 * idempotency.DefaultBreakerFailures {
				g.store.fail = always(tt.fail(i))
				_, err := g.Acquire(tt.ctx, g.record(), time.Minute)
				require.NotErrorIs(t, err, idempotency.ErrBreakerOpen)
				require.False(t, g.Open())
			}
		})
	}
}

// TestBreakerCountsTimeouts is for stores without timeouts of their own: the
// middleware's ends their steps.
func TestBreakerCountsTimeouts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := guard(t)
		g.store.fail = func(ctx context.Context, _ string) error {
			<-ctx.Done()
			return errStore
		}
		for range idempotency.DefaultBreakerFailures {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := g.Acquire(ctx, g.record(), time.Minute)
			cancel()
			require.ErrorIs(t, err, idempotency.ErrUnavailable)
		}
		require.True(t, g.Open())
	})
}

// TestBreakerHasOneProbe keeps the probe waiting for its answer.
func TestBreakerHasOneProbe(t *testing.T) {
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
				g.store.fail = func(context.Context, string) error {
					time.Sleep(time.Hour)
					return tt.answer
				}
				time.Sleep(idempotency.DefaultBreakerPause)
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
				require.ErrorIs(t, err, idempotency.ErrBreakerOpen)
				time.Sleep(30 * time.Minute)
				g.requireRefused()
				if tt.gone {
					leave()
				}
				require.ErrorIs(t, <-probe, tt.answer)
				g.store.fail = nil
				require.Equal(t, tt.open, g.Open())
				tt.next(g)
			})
		})
	}
}

// TestBreakerSurvivesAPanic has the probe's store panic, which must not leave
// everybody waiting for its answer.
func TestBreakerSurvivesAPanic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := guard(t)
		g.trip()
		time.Sleep(idempotency.DefaultBreakerPause)
		g.store.fail = func(context.Context, string) error { panic("store") }
		require.Panics(t, func() { _ = g.acquire() })
		g.store.fail = nil
		g.requireRefused()
		time.Sleep(idempotency.DefaultBreakerPause)
		require.NoError(t, g.acquire())
	})
}

// TestBreakerForgetsWhatIsOld has acquisitions that began before a change answer
// after it.
func TestBreakerForgetsWhatIsOld(t *testing.T) {
	t.Parallel()
	for name, old := range map[string]error{"a failure": errStore, "an answer": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := guard(t)
				g.store.fail = func(context.Context, string) error {
					time.Sleep(time.Second)
					return old
				}
				var late sync.WaitGroup
				for range 2 * idempotency.DefaultBreakerFailures {
					late.Go(func() { _ = g.acquire() })
				}
				synctest.Wait()
				g.trip()
				if old != nil {
					g.store.fail = nil
					time.Sleep(idempotency.DefaultBreakerPause)
					require.NoError(t, g.acquire())
				}
				open := g.Open()
				late.Wait()
				require.Equal(t, open, g.Open())
			})
		})
	}
}

func TestBreakerLetsOwnersThrough(t *testing.T) {
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
		g.store.fail = nil
		require.NoError(t, g.Extend(t.Context(), held, time.Minute))
		kept.Status, kept.Response.StatusCode = idempotency.StatusCompleted, http.StatusCreated
		require.NoError(t, g.Complete(t.Context(), kept, time.Minute))
		require.NoError(t, g.Release(t.Context(), held))
		g.requireRefused()
	})
}

func TestBreakerLooksUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		b := idempotency.NewBreaker(struct {
			*tappedStore
			idempotency.Reader
		}{&tappedStore{Store: store, fail: always(errStore)}, store}, idempotency.WithBreakerLogger(slog.New(slog.DiscardHandler)))
		_, err := b.Lookup(t.Context(), "", "key")
		require.NoError(t, err)
		for range idempotency.DefaultBreakerFailures {
			_, err := b.Acquire(t.Context(), idempotency.Record{}, time.Minute)
			require.ErrorIs(t, err, idempotency.ErrUnavailable)
		}
		_, err = idempotency.Lookup(t.Context(), b, "", "key")
		require.ErrorIs(t, err, idempotency.ErrBreakerOpen)
		require.ErrorIs(t, err, idempotency.ErrUnavailable)
		time.Sleep(idempotency.DefaultBreakerPause)
		_, err = b.Lookup(t.Context(), "", "key")
		require.NoError(t, err)
		require.True(t, b.Open(), "reading says nothing about writing")
	})
}

// TestAnOutageCostsMilliseconds sends requests, one after the other, while the
// store is silent: each acquisition that reaches it takes two seconds.
func TestAnOutageCostsMilliseconds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		policy idempotency.Policy
		code   int
	}{
		"failing closed": {idempotency.Policy{}, http.StatusServiceUnavailable},
		"failing open":   {idempotency.Policy{OnUnavailable: idempotency.FailOpen}, http.StatusCreated},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setupOn(t, guardQuietly, tt.policy, nil)
				b.store.fail = hang("acquire")
				for range idempotency.DefaultBreakerFailures {
					require.Equal(t, tt.code, b.post(t, "key", "").Code)
				}
				b.Wait()
				steps, began := len(b.store.taken()), time.Now()
				for range 1000 {
					require.Equal(t, tt.code, b.post(t, "key", "").Code)
					require.ErrorIs(t, b.lastCheck().Err, idempotency.ErrBreakerOpen)
				}
				b.Wait()
				require.Zero(t, time.Since(began))
				require.Len(t, b.store.taken(), steps, "there is nothing to tidy up where nothing was asked")

				b.store.fail = nil
				time.Sleep(idempotency.DefaultBreakerPause)
				require.Equal(t, http.StatusCreated, b.post(t, "key", "").Code)
				require.Equal(t, idempotency.ResultAcquired, b.lastCheck().Result)
			})
		})
	}
}

func guardQuietly(s *tappedStore) idempotency.Store {
	return idempotency.NewBreaker(s, idempotency.WithBreakerLogger(slog.New(slog.DiscardHandler)))
}

// TestAWaiterAtABreaker was not asked for in between, so that there is nothing
// to release when its time is up.
func TestAWaiterAtABreaker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var breaker idempotency.Store
		b := setupOn(t, func(s *tappedStore) idempotency.Store {
			breaker = idempotency.NewBreaker(s, idempotency.WithBreakerPause(time.Hour), idempotency.WithBreakerLogger(slog.New(slog.DiscardHandler)))
			return breaker
		}, idempotency.Policy{Wait: 10 * time.Second}, nil)
		require.NoError(t, b.abandonKey(t, "key"))
		s := b.start(request(t, "key", ""))
		synctest.Wait()
		b.store.fail = always(errStore)
		for range idempotency.DefaultBreakerFailures {
			_, _ = breaker.Acquire(t.Context(), idempotency.Record{}, time.Minute)
		}
		requireProblem(t, s.wait().ResponseRecorder, http.StatusConflict, idempotency.CodeInProgress)
		b.Wait()
		require.NotContains(t, b.store.taken(), "release")
	})
}

// TestABreakerInAStorm has a crowd ask a store that comes and goes, and counts
// what the outages cost: those that were under way, and then one for each pause.
func TestABreakerInAStorm(t *testing.T) {
	t.Parallel()
	const crowd, outage, timeout = 64, 20 * time.Second, 100 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		g := guard(t)
		var away atomic.Bool
		var cost, served atomic.Int64
		g.store.fail = func(context.Context, string) error {
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
		for range 3 {
			time.Sleep(time.Second)
			cost.Store(0)
			away.Store(true)
			time.Sleep(outage)
			away.Store(false)
			require.LessOrEqual(t, cost.Load(), int64(crowd+outage/idempotency.DefaultBreakerPause))
			time.Sleep(idempotency.DefaultBreakerPause + timeout + 10*time.Millisecond)
			require.False(t, g.Open(), "it is back")
			before := served.Load()
			time.Sleep(time.Second)
			require.Greater(t, served.Load()-before, int64(10*crowd))
		}
		end()
		all.Wait()
	})
}

// TestABreakerUnderRace is for the race detector, on real time.
func TestABreakerUnderRace(t *testing.T) {
	t.Parallel()
	b := idempotency.NewBreaker(&flaky{memstore.New()}, idempotency.WithBreakerFailures(1), idempotency.WithBreakerPause(time.Microsecond),
		idempotency.WithBreakerLogger(slog.New(slog.DiscardHandler)))
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
