package checkout

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReconciler_BackoffDoublesAndIsBounded(t *testing.T) {
	t.Parallel()
	r := NewReconciler(nopReconcileStore{}, nil, nil, ReconcilerOptions{Backoff: time.Second, MaxBackoff: time.Minute})
	for attempt, ceiling := range map[int32]time.Duration{1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 6: 32 * time.Second,
		7: time.Minute, 1 << 30: time.Minute} {
		var longest time.Duration
		shortest := time.Hour
		for range 1000 {
			wait := r.backoff(attempt)
			longest, shortest = max(longest, wait), min(shortest, wait)
		}
		require.Less(t, longest, ceiling)
		require.Greater(t, longest, ceiling*9/10, "attempt %d", attempt)
		require.Less(t, shortest, ceiling/10, "attempt %d: full jitter", attempt)
	}
}

// TestReconciler_DefaultGraceExceedsAnAttempt adds up how long an attempt may take.
func TestReconciler_DefaultGraceExceedsAnAttempt(t *testing.T) {
	t.Parallel()
	require.Greater(t, DefaultGrace, askTimeout+SettleGrace)
	r := NewReconciler(nopReconcileStore{}, nil, nil, ReconcilerOptions{})
	require.Equal(t, DefaultGrace, r.options.Grace)
	require.Equal(t, DefaultDeadline, r.options.Deadline)
	require.Equal(t, reconcileInterval, r.options.Interval)
	require.Greater(t, r.options.Deadline, r.options.Grace+r.options.MaxBackoff+askTimeout+SettleGrace+2*reconcileInterval)
}

// nopReconcileStore has nothing to reconcile.
type nopReconcileStore struct{ ReconcileStore }

func (nopReconcileStore) CardPayments() Operations[NewPayment, Payment] { return nil }
func (nopReconcileStore) CardRefunds() Operations[NewRefund, Refund]    { return nil }
