package idempotency_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/internal/faulty"
	"github.com/oncepay/oncepay/idempotency/memstore"
)

// damageable is a store of one key, whose record can be damaged.
type damageable struct {
	mu      sync.Mutex
	store   *memstore.Store
	damaged bool
	repairs int
}

func (d *damageable) damage() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.damaged = true
}

// take takes a step at the store, unless the record is damaged.
func (d *damageable) take(step func(*memstore.Store) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.damaged {
		return idempotency.ErrCorrupt
	}
	return step(d.store)
}

func (d *damageable) Acquire(ctx context.Context, r idempotency.Record, lease time.Duration) (existing *idempotency.Record, err error) {
	err = d.take(func(s *memstore.Store) (err error) { existing, err = s.Acquire(ctx, r, lease); return err })
	return existing, err
}

func (d *damageable) Extend(ctx context.Context, r idempotency.Record, lease time.Duration) error {
	return d.take(func(s *memstore.Store) error { return s.Extend(ctx, r, lease) })
}

func (d *damageable) Complete(ctx context.Context, r idempotency.Record, ttl time.Duration) error {
	return d.take(func(s *memstore.Store) error { return s.Complete(ctx, r, ttl) })
}

func (d *damageable) Release(ctx context.Context, r idempotency.Record) error {
	return d.take(func(s *memstore.Store) error { return s.Release(ctx, r) })
}

func (d *damageable) Repair(ctx context.Context, r idempotency.Record, lease time.Duration) (*idempotency.Record, error) {
	d.mu.Lock()
	if d.damaged {
		d.store, d.damaged = memstore.New(), false
	}
	d.repairs++
	d.mu.Unlock()
	return d.Acquire(ctx, r, lease)
}

// setupDamageable is setupWork with such a store.
func setupDamageable(t *testing.T, policy idempotency.Policy, work func(context.Context) (string, error)) (*workshop, *damageable) {
	t.Helper()
	store := &damageable{store: memstore.New()}
	return setupWorkOn(t, func(*faulty.Store) idempotency.Store { return store }, policy, work), store
}

func TestRepair_LetsTheAuthorityDecide(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]idempotency.Policy{
		"failing closed": {Authority: true}, "failing open": {FailureMode: idempotency.FailOpen},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, store := setupDamageable(t, policy, counted())
			store.damage()
			_, err := s.do(t.Context(), "key")
			require.NoError(t, err)
			require.Equal(t, idempotency.ResultAcquired, s.lastCheck().Result)
			require.True(t, s.lastCheck().Repaired)
			result, err := s.do(t.Context(), "key")
			require.NoError(t, err)
			require.Equal(t, "run 1", result)
			require.False(t, s.lastCheck().Repaired)
			require.Equal(t, 1, store.repairs)
		})
	}
}

func TestRepair_NeedsAnAuthority(t *testing.T) {
	t.Parallel()
	s, store := setupDamageable(t, idempotency.Policy{}, counted())
	store.damage()
	_, err := s.do(t.Context(), "key")
	requireCode(t, idempotency.CodeStoreUnavailable, err)
	require.ErrorIs(t, s.lastCheck().Err, idempotency.ErrCorrupt)
	require.Zero(t, store.repairs)
	require.Zero(t, s.ran())
}

func TestRepair_ByAStoreThatCannotLeavesTheKeyUnavailable(t *testing.T) {
	t.Parallel()
	s := setupWork(t, idempotency.Policy{Authority: true}, counted())
	s.store.Fail = faulty.On(faulty.Acquire, idempotency.ErrCorrupt)
	_, err := s.do(t.Context(), "key")
	requireCode(t, idempotency.CodeStoreUnavailable, err)
	require.ErrorIs(t, s.lastCheck().Err, errors.ErrUnsupported)
	require.False(t, s.lastCheck().Repaired)
}

// TestRepair_EndsTheAttemptWhoseRecordWasDamaged: what was damaged may have been the record of an
// attempt that is running. Its next heartbeat finds the lease lost, and it cannot change the next
// attempt's record.
func TestRepair_EndsTheAttemptWhoseRecordWasDamaged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, repaired := make(chan struct{}), make(chan struct{})
		policy := idempotency.Policy{Authority: true, Lease: 15 * time.Second}
		s, store := setupDamageable(t, policy, func(ctx context.Context) (string, error) {
			select {
			case <-began:
				close(repaired)
				return "second", nil
			default:
				close(began)
				<-repaired
				at := time.Now()
				<-ctx.Done()
				require.ErrorIs(t, context.Cause(ctx), idempotency.ErrLost)
				require.LessOrEqual(t, time.Since(at), policy.Lease/3, "at the next heartbeat")
				return "first", nil
			}
		})
		var running sync.WaitGroup
		running.Go(func() {
			first, err := s.do(t.Context(), "key")
			require.NoError(t, err)
			require.Equal(t, "first", first, "an authority may have committed it")
		})
		<-began
		store.damage()
		for range 2 {
			result, err := s.do(t.Context(), "key")
			require.NoError(t, err)
			require.Equal(t, "second", result)
		}
		running.Wait()
		require.Equal(t, idempotency.ResultLost, s.lastCheck().Result)
	})
}
