package idempotency_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/internal/faulty"
)

// These tests are about the moments at which work starts and ends: it must hold its key then. The
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

// leaveBehind acquires a key for 30 s, and does nothing with it, as a killed process.
func (s *workshop) leaveBehind(key string) error {
	_, err := s.store.Store.Acquire(context.Background(), idempotency.Record{
		Scope: s.Scope, Key: key, Status: idempotency.StatusInProgress, Owner: idempotency.NewOwner(),
	}, 30*time.Second)
	return err
}

func TestWork_DoesNotStartAfterItsLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s *workshop
		s = setupWork(t, idempotency.Policy{}, func(ctx context.Context) (string, error) {
			record, err := idempotency.Lookup(ctx, s.store.Store, "jobs", "key")
			require.NoError(t, err)
			require.NotNil(t, record, "the key is held")
			require.Equal(t, idempotency.ClaimFrom(ctx).Owner, record.Owner)
			require.Greater(t, time.Until(record.ExpiresAt), 9*time.Second)
			return "done", nil
		})
		s.store.Lose = atFirst(func() { time.Sleep(16 * time.Second) })
		_, err := s.do(t.Context(), "key")
		require.NoError(t, err)
		require.Equal(t, 1, s.ran())
	})
}

func TestWork_DoesNotStartAfterATakeover(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := setupWork(t, idempotency.Policy{}, counted())
		s.store.Lose = atFirst(func() {
			time.Sleep(15 * time.Second)
			require.NoError(t, s.leaveBehind("key"))
			time.Sleep(time.Second)
		})
		_, err := s.do(t.Context(), "key")
		requireCode(t, idempotency.CodeInProgress, err)
		require.Zero(t, s.ran())
	})
}

// TestWork_DoesNotStartOnAStoreThatIsTooSlow: each step takes longer than the lease.
func TestWork_DoesNotStartOnAStoreThatIsTooSlow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := setupWork(t, idempotency.Policy{}, counted())
		s.store.Lose = func(context.Context, string) error { time.Sleep(20 * time.Second); return nil }
		_, err := s.do(t.Context(), "key")
		requireCode(t, idempotency.CodeStoreUnavailable, err)
		require.Zero(t, s.ran())
	})
}

// TestWaiter_DoesNotTrustAnEarlierLease: the waiter's acquire is applied at 30 s and its reply
// is lost. The store is silent until 42 s, and then says that the key is the waiter's own.
func TestWaiter_DoesNotTrustAnEarlierLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := setupWork(t, patient, lasting(t, 10*time.Second))
		require.NoError(t, s.leaveBehind("key"))
		began := time.Now()
		s.store.Lose = func(_ context.Context, step string) error {
			if since := time.Since(began); step == faulty.Acquire && since > 29*time.Second && since < 42*time.Second {
				return errStore
			}
			return nil
		}
		var running sync.WaitGroup
		do := func() {
			result, err := s.do(t.Context(), "key")
			require.NoError(t, err)
			require.Equal(t, "done", result)
		}
		running.Go(do)
		time.Sleep(46 * time.Second) // the lease of the acquire at 30 s has ended
		do()
		running.Wait()
		require.Equal(t, 1, s.ran())
	})
}

// TestWork_IsAnsweredAfterALostLease: an authority may have committed what it did.
func TestWork_IsAnsweredAfterALostLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := setupWork(t, idempotency.Policy{}, func(context.Context) (string, error) {
			time.Sleep(20 * time.Second)
			return "committed", nil
		})
		s.store.Fail = faulty.On(faulty.Extend, idempotency.ErrLost)
		var running sync.WaitGroup
		do := func() {
			result, err := s.do(t.Context(), "key")
			require.NoError(t, err)
			require.Equal(t, "committed", result)
		}
		running.Go(do)
		time.Sleep(16 * time.Second)
		do() // takes the key over
		running.Wait()
		require.Equal(t, []idempotency.Result{idempotency.ResultLost, idempotency.ResultLost}, s.results())
	})
}
