package idempotency_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/internal/faulty"
)

// These tests run on synctest's clock: their seconds pass at once. The lease is 15 s.

// lasting is work that takes so long, and must not be cancelled.
func lasting(t *testing.T, d time.Duration) func(context.Context) (string, error) {
	t.Helper()
	return func(ctx context.Context) (string, error) {
		time.Sleep(d)
		require.NoError(t, ctx.Err())
		return "done", nil
	}
}

func TestHeartbeat_KeepsTheKeyOfSlowWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := setupWork(t, idempotency.Policy{}, lasting(t, 10*time.Minute+time.Second))
		var running sync.WaitGroup
		running.Go(func() { _, _ = s.do(t.Context(), "key") })
		time.Sleep(9 * time.Minute)
		_, err := s.do(t.Context(), "key")
		requireCode(t, idempotency.CodeInProgress, err)
		running.Wait()
		result, err := s.do(t.Context(), "key")
		require.NoError(t, err)
		require.Equal(t, "done", result)
		require.Equal(t, 1, s.ran())
		beats := slices.DeleteFunc(s.store.Taken(), func(step string) bool { return step != faulty.Extend })
		require.Len(t, beats, 120, "one every five seconds")
	})
}

// cancelled is work that ends when it is cancelled, and says when and why.
type cancelled struct {
	after time.Duration
	cause error
}

func (c *cancelled) work(ctx context.Context) (string, error) {
	began := time.Now()
	<-ctx.Done()
	c.after, c.cause = time.Since(began), context.Cause(ctx)
	return "", ctx.Err()
}

func TestHeartbeat_CancelsTheWorkOnALostLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c cancelled
		s := setupWork(t, idempotency.Policy{}, c.work)
		s.store.Fail = faulty.On(faulty.Extend, idempotency.ErrLost)
		_, err := s.do(t.Context(), "key")
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, idempotency.ErrLost, "its caller learns why")
		require.ErrorIs(t, c.cause, idempotency.ErrLost)
		require.Equal(t, 5*time.Second, c.after)
		require.Equal(t, idempotency.ResultLost, s.lastCheck().Result)
		require.ErrorIs(t, s.lastCheck().Err, idempotency.ErrLost)
	})
}

// TestHeartbeat_CancelsTheWorkInTime cancels the work before anybody else could hold the key,
// and as late as that allows.
func TestHeartbeat_CancelsTheWorkInTime(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(context.Context, string) error{
		"at once":     faulty.On(faulty.Extend, idempotency.ErrUnavailable),
		"by silence":  faulty.Hang(faulty.Extend),
		"as they can": faulty.On(faulty.Extend, idempotency.ErrCorrupt),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var c cancelled
				s := setupWork(t, idempotency.Policy{}, c.work)
				s.store.Fail = fail
				_, err := s.do(t.Context(), "key")
				require.ErrorIs(t, err, idempotency.ErrUnavailable)
				require.ErrorIs(t, c.cause, idempotency.ErrUnavailable)
				require.GreaterOrEqual(t, c.after, 12500*time.Millisecond)
				require.LessOrEqual(t, c.after, 13750*time.Millisecond, "before the lease of 15 s ends")
				require.Equal(t, idempotency.ResultLost, s.lastCheck().Result)
			})
		})
	}
}

func TestHeartbeat_SurvivesFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := setupWork(t, idempotency.Policy{}, lasting(t, 10*time.Minute))
		began := time.Now()
		s.store.Fail = func(_ context.Context, step string) error {
			if step == faulty.Extend && time.Since(began)%(20*time.Second) < 6*time.Second {
				return idempotency.ErrUnavailable // often, but never for too long
			}
			return nil
		}
		for range 2 {
			_, err := s.do(t.Context(), "key")
			require.NoError(t, err)
		}
		require.Equal(t, []idempotency.Result{idempotency.ResultAcquired, idempotency.ResultReplay}, s.results())
	})
}

func TestHeartbeat_MakesALastAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := setupWork(t, idempotency.Policy{}, lasting(t, 20*time.Second))
		began := time.Now()
		s.store.Fail = func(ctx context.Context, step string) error {
			if step == faulty.Extend && time.Since(began) < 12500*time.Millisecond {
				return idempotency.ErrUnavailable
			}
			return ctx.Err()
		}
		_, err := s.do(t.Context(), "key")
		require.NoError(t, err)
		require.Equal(t, []idempotency.Result{idempotency.ResultAcquired}, s.results())
	})
}

func TestHeartbeat_EndsWithTheWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := setupWork(t, idempotency.Policy{}, counted())
		_, err := s.do(t.Context(), "key")
		require.NoError(t, err)
		time.Sleep(time.Minute)
		require.Equal(t, []string{faulty.Acquire, faulty.Complete}, s.store.Taken())
	})
}

// TestHeartbeat_CountsFromTheAcquire: a reply that took 4 s leaves one second to the first
// heartbeat.
func TestHeartbeat_CountsFromTheAcquire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := setupWork(t, idempotency.Policy{}, lasting(t, 3*time.Second))
		began := time.Now()
		s.store.Lose = atFirst(func() { time.Sleep(4 * time.Second) })
		s.store.Fail = func(_ context.Context, step string) error {
			if step == faulty.Extend {
				require.Equal(t, 5*time.Second, time.Since(began))
			}
			return nil
		}
		_, err := s.do(t.Context(), "key")
		require.NoError(t, err)
		require.Contains(t, s.store.Taken(), faulty.Extend)
	})
}
