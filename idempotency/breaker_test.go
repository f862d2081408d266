package idempotency_test

import (
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/breaker"
	"github.com/oncepay/oncepay/idempotency/internal/faulty"
)

// These tests run the middleware on a store behind a breaker.

// TestBreaker_MakesAnOutageCheap sends requests, one after the other, while the
// store is silent: each acquisition that reaches it takes two seconds.
func TestBreaker_MakesAnOutageCheap(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		policy idempotency.Policy
		code   int
	}{
		"failing closed": {idempotency.Policy{}, http.StatusServiceUnavailable},
		"failing open":   {idempotency.Policy{FailureMode: idempotency.FailOpen}, http.StatusCreated},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setupOn(t, guardQuietly, tt.policy, nil)
				b.store.Fail = faulty.Hang(faulty.Acquire)
				for range breaker.DefaultFailures {
					require.Equal(t, tt.code, b.post(t, "key", "").Code)
				}
				b.Wait()
				steps, began := len(b.store.Taken()), time.Now()
				for range 1000 {
					require.Equal(t, tt.code, b.post(t, "key", "").Code)
					require.ErrorIs(t, b.lastCheck().Err, idempotency.ErrNotSent)
				}
				b.Wait()
				require.Zero(t, time.Since(began))
				require.Len(t, b.store.Taken(), steps, "there is nothing to tidy up where nothing was asked")

				b.store.Fail = nil
				time.Sleep(breaker.DefaultPause)
				require.Equal(t, http.StatusCreated, b.post(t, "key", "").Code)
				require.Equal(t, idempotency.ResultAcquired, b.lastCheck().Result)
			})
		})
	}
}

func guardQuietly(s *faulty.Store) idempotency.Store {
	return breaker.New(s, breaker.WithLogger(slog.New(slog.DiscardHandler)))
}

// TestWaiter_AtAnOpenBreakerReleasesNothing was not asked for in between, so that there is nothing
// to release when its time is up.
func TestWaiter_AtAnOpenBreakerReleasesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var guarded idempotency.Store
		b := setupOn(t, func(s *faulty.Store) idempotency.Store {
			guarded = breaker.New(s, breaker.WithPause(time.Hour), breaker.WithLogger(slog.New(slog.DiscardHandler)))
			return guarded
		}, idempotency.Policy{Wait: 10 * time.Second}, nil)
		require.NoError(t, b.abandonKey(t, "key"))
		s := b.start(request(t, "key", ""))
		synctest.Wait()
		b.store.Fail = faulty.Always(errStore)
		for range breaker.DefaultFailures {
			_, _ = guarded.Acquire(t.Context(), idempotency.Record{}, time.Minute)
		}
		requireProblem(t, s.wait().ResponseRecorder, http.StatusConflict, idempotency.CodeInProgress)
		b.Wait()
		require.NotContains(t, b.store.Taken(), "release")
	})
}
