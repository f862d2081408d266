package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
)

// watchCases are for stores that are an [idempotency.Watcher].
func watchCases(t *testing.T, run cases, setup func(t *testing.T) Bench) {
	t.Helper()
	changed, stop := idempotency.Watch(setup(t).Store, "scope", "key")
	stop()
	if changed == nil {
		return
	}
	run("all watches of a key receive one change after the other", func(t *testing.T, b *bench) {
		pending := b.held(t, "key", long)
		first, second := b.watched(t, pending), b.watched(t, pending)
		require.NoError(t, b.Store.Release(t.Context(), pending))
		RequireChange(t, first)
		RequireChange(t, second)
		finished := b.completed(t, "key", "answer")
		RequireChange(t, first)
		b.requireHolds(t, finished) // it is complete before the change is announced
		RequireChange(t, second)
	})
	run("watches of other scopes and keys receive nothing", func(t *testing.T, b *bench) {
		pending := b.held(t, "key", long)
		changed := b.watched(t, pending)
		for _, key := range []string{"other", "key:", ":key", "KEY"} {
			other := b.held(t, key, long)
			otherChanged := b.watched(t, other)
			require.NoError(t, b.Store.Release(t.Context(), other))
			RequireChange(t, otherChanged)
		}
		requireNoChange(t, changed)
	})
	run("a stopped watch receives nothing", func(t *testing.T, b *bench) {
		pending := b.held(t, "key", long)
		changed, stop := idempotency.Watch(b.Store, pending.Scope, pending.Key)
		RequireChange(t, changed)
		still := b.watched(t, pending)
		stop()
		stop()
		require.NoError(t, b.Store.Complete(t.Context(), done(pending, "answer"), long))
		RequireChange(t, still)
		requireNoChange(t, changed)
	})
	run("many watch at once", func(t *testing.T, b *bench) {
		b.together(t, func(i int) error {
			pending := b.pending(fmt.Sprintf("key-%d", i%8))
			changed, stop := idempotency.Watch(b.Store, pending.Scope, pending.Key)
			defer stop()
			select {
			case <-changed:
				return nil
			case <-time.After(patience):
				return fmt.Errorf("watch %d did not receive its start", i)
			}
		})
	})
}

// watched begins a watch, and returns when it has begun.
func (b *bench) watched(t *testing.T, r idempotency.Record) <-chan struct{} {
	t.Helper()
	changed, stop := idempotency.Watch(b.Store, r.Scope, r.Key)
	t.Cleanup(stop)
	RequireChange(t, changed)
	return changed
}

// RequireChange fails the test unless a watch receives a change within 20 seconds.
func RequireChange(t testing.TB, changed <-chan struct{}) {
	t.Helper()
	select {
	case <-changed:
	case <-time.After(patience):
		require.Fail(t, "the watch received nothing")
	}
}

// requireNoChange fails if a change has been received. The caller has already received a later one.
func requireNoChange(t *testing.T, changed <-chan struct{}) {
	t.Helper()
	select {
	case <-changed:
		require.Fail(t, "the watch received a change of another key")
	default:
	}
}
