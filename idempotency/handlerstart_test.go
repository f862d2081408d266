package idempotency_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/internal/faulty"
)

// These tests are about the moment at which a handler starts: it must hold its key then. The
// lease is 15 s.

// atFirst has f happen after the first acquire was applied, before its reply arrives.
func atFirst(f func()) func(context.Context, string) error {
	first := true
	return func(_ context.Context, step string) error {
		if step == faulty.Acquire && first {
			first = false
			f()
		}
		return nil
	}
}

func TestHandler_DoesNotStartAfterItsLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b *bundle
		b = setup(t, idempotency.Policy{}, func(_ http.ResponseWriter, r *http.Request) {
			record, err := idempotency.Lookup(r.Context(), b.memory(), "", "key")
			require.NoError(t, err)
			require.NotNil(t, record, "the key is held")
			require.Equal(t, idempotency.ClaimFrom(r.Context()).Owner, record.Owner)
			require.Greater(t, time.Until(record.ExpiresAt), 9*time.Second)
		})
		b.store.Lose = atFirst(func() { time.Sleep(16 * time.Second) })
		require.Equal(t, http.StatusOK, b.post(t, "key", "").Code)
		require.Equal(t, 1, b.ran())
	})
}

func TestHandler_DoesNotStartAfterATakeover(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, idempotency.Policy{}, nil)
		b.store.Lose = atFirst(func() {
			time.Sleep(15 * time.Second)
			require.NoError(t, b.abandonKey(t, "key"))
			time.Sleep(time.Second)
		})
		requireProblem(t, b.post(t, "key", ""), http.StatusConflict, idempotency.CodeInProgress)
		require.Zero(t, b.ran())
	})
}

// TestHandler_DoesNotStartOnAStoreThatIsTooSlow: each step takes longer than the lease.
func TestHandler_DoesNotStartOnAStoreThatIsTooSlow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, idempotency.Policy{}, nil)
		b.store.Lose = func(context.Context, string) error { time.Sleep(20 * time.Second); return nil }
		requireProblem(t, b.post(t, "key", ""), http.StatusServiceUnavailable, idempotency.CodeStoreUnavailable)
		require.Zero(t, b.ran())
	})
}

// TestWaiter_DoesNotTrustAnEarlierLease: the waiter's acquire is applied at 30 s and its reply
// is lost. The store is silent until 42 s, and then says that the key is the waiter's own.
func TestWaiter_DoesNotTrustAnEarlierLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, patient, func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(10 * time.Second)
			write(w, "once")
		})
		require.NoError(t, b.abandonKey(t, "key"))
		began := time.Now()
		b.store.Lose = func(_ context.Context, step string) error {
			if since := time.Since(began); step == faulty.Acquire && since > 29*time.Second && since < 42*time.Second {
				return errStore
			}
			return nil
		}
		waiter := b.start(request(t, "key", ""))
		time.Sleep(46 * time.Second) // the lease of the acquire at 30 s has ended
		second := b.post(t, "key", "")
		require.Equal(t, "once", second.Body.String())
		requireReplay(t, waiter.wait().ResponseRecorder, second)
		require.Equal(t, 1, b.ran())
	})
}

// TestHeartbeat_CountsFromTheAcquire: a reply that took 4 s leaves one second to the first
// heartbeat.
func TestHeartbeat_CountsFromTheAcquire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, idempotency.Policy{}, func(http.ResponseWriter, *http.Request) { time.Sleep(3 * time.Second) })
		began := time.Now()
		b.store.Lose = atFirst(func() { time.Sleep(4 * time.Second) })
		b.store.Fail = func(_ context.Context, step string) error {
			if step == faulty.Extend {
				require.Equal(t, 5*time.Second, time.Since(began))
			}
			return nil
		}
		b.post(t, "key", "")
		require.Contains(t, b.store.Taken(), faulty.Extend)
	})
}
