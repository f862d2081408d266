package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
)

func acquireCases(run cases) {
	run("acquire returns the record that is there", func(t *testing.T, b *bench) {
		first := b.held(t, "key", long)
		existing := b.look(t, "key")
		require.NotNil(t, existing)
		require.Equal(t, first.Scope, existing.Scope)
		require.Equal(t, first.Key, existing.Key)
		require.Equal(t, idempotency.StatusInProgress, existing.Status)
		require.Equal(t, first.Owner, existing.Owner)
		require.Equal(t, first.Fingerprint, existing.Fingerprint)
		require.True(t, first.CreatedAt.Equal(existing.CreatedAt))
		require.False(t, existing.ExpiresAt.IsZero(), "the store says when the lease ends")
	})
	run("acquire repeated after a lost reply succeeds", func(t *testing.T, b *bench) {
		pending := b.held(t, "key", long)
		existing, err := b.Store.Acquire(t.Context(), pending, long)
		require.NoError(t, err)
		require.Nil(t, existing)
		b.requireHolds(t, pending)
	})
	run("acquire by the owner of a finished record gets that record", func(t *testing.T, b *bench) {
		finished := b.completed(t, "key", "answer")
		again := b.pending("key")
		again.Owner = finished.Owner
		existing, err := b.Store.Acquire(t.Context(), again, long)
		require.NoError(t, err)
		require.NotNil(t, existing, "it must not run again")
		require.Equal(t, "answer", string(existing.Response.Body))
	})
	run("a failed record is returned like a completed one", func(t *testing.T, b *bench) {
		failed := done(b.held(t, "key", long), "declined")
		failed.Status, failed.Response.StatusCode = idempotency.StatusFailed, 402
		require.NoError(t, b.Store.Complete(t.Context(), failed, long))
		b.requireHolds(t, failed)
	})
}

func leaseCases(run cases) {
	run("an expired lease can be taken over", func(t *testing.T, b *bench) {
		b.held(t, "key", short)
		b.requireHolds(t, b.takeover(t, "key"))
	})
	run("an owner without a lease changes nothing", func(t *testing.T, b *bench) {
		lost := b.held(t, "key", short)
		holder := b.takeover(t, "key")
		require.ErrorIs(t, b.Store.Extend(t.Context(), lost, long), idempotency.ErrLost)
		require.ErrorIs(t, b.Store.Complete(t.Context(), done(lost, "late"), long), idempotency.ErrLost)
		require.ErrorIs(t, b.Store.Release(t.Context(), lost), idempotency.ErrLost)
		b.requireHolds(t, holder)
	})
	run("an owner without a lease cannot change the next one's answer", func(t *testing.T, b *bench) {
		lost := b.held(t, "key", short)
		finished := done(b.takeover(t, "key"), "the answer")
		require.NoError(t, b.Store.Complete(t.Context(), finished, long))
		require.ErrorIs(t, b.Store.Extend(t.Context(), lost, long), idempotency.ErrLost)
		require.ErrorIs(t, b.Store.Complete(t.Context(), done(lost, "late"), long), idempotency.ErrLost)
		require.ErrorIs(t, b.Store.Release(t.Context(), lost), idempotency.ErrLost)
		b.requireHolds(t, finished)
	})
	run("an expired lease is lost even without a takeover", func(t *testing.T, b *bench) {
		lost := b.held(t, "key", short)
		b.pass(t)
		require.ErrorIs(t, b.Store.Extend(t.Context(), lost, long), idempotency.ErrLost)
		require.ErrorIs(t, b.Store.Complete(t.Context(), done(lost, "late"), long), idempotency.ErrLost)
		require.NoError(t, b.Store.Release(t.Context(), lost), "absent counts as released")
		require.Nil(t, b.look(t, "key"), "none of it has written anything")
	})
	run("extend begins the lease anew", func(t *testing.T, b *bench) {
		pending := b.held(t, "key", long)
		before := b.look(t, "key")
		require.NoError(t, b.Store.Extend(t.Context(), pending, 2*long))
		after := b.look(t, "key")
		require.True(t, after.ExpiresAt.After(before.ExpiresAt), "the record says so too")

		require.NoError(t, b.Store.Extend(t.Context(), pending, short))
		b.takeover(t, "key")
	})
	run("extend outlives the first lease", func(t *testing.T, b *bench) {
		pending := b.pending("key")
		require.Eventually(t, func() bool { // a machine that stalls loses a short lease in between
			existing, err := b.Store.Acquire(t.Context(), pending, short)
			return err == nil && existing == nil && b.Store.Extend(t.Context(), pending, long) == nil
		}, patience, pollEvery)
		b.pass(t)
		b.requireHolds(t, pending)
	})
	run("extend of a finished record is refused", func(t *testing.T, b *bench) {
		finished := b.completed(t, "key", "answer")
		pending := b.pending("key")
		pending.Owner = finished.Owner
		require.ErrorIs(t, b.Store.Extend(t.Context(), pending, long), idempotency.ErrLost)
		b.requireHolds(t, finished)
	})
	run("extend of another owner's or no record is refused", func(t *testing.T, b *bench) {
		holder := b.held(t, "key", long)
		require.ErrorIs(t, b.Store.Extend(t.Context(), b.pending("key"), 2*long), idempotency.ErrLost)
		b.requireHolds(t, holder)
		require.ErrorIs(t, b.Store.Extend(t.Context(), b.pending("other"), long), idempotency.ErrLost)
		require.Nil(t, b.look(t, "other"))
	})
}

func completeCases(run cases) {
	run("a completed record is visible for every owner", func(t *testing.T, b *bench) {
		b.requireHolds(t, b.completed(t, "key", "answer"))
	})
	run("a finished record ends with its ttl", func(t *testing.T, b *bench) {
		pending := b.held(t, "key", long)
		require.NoError(t, b.Store.Complete(t.Context(), done(pending, "answer"), short))
		b.requireHolds(t, b.takeover(t, "key"))
	})
	run("a finished record outlives its lease", func(t *testing.T, b *bench) {
		var finished idempotency.Record
		require.Eventually(t, func() bool {
			pending := b.pending("key")
			existing, err := b.Store.Acquire(t.Context(), pending, short)
			finished = done(pending, "answer")
			return err == nil && existing == nil && b.Store.Complete(t.Context(), finished, long) == nil
		}, patience, pollEvery)
		b.pass(t)
		b.requireHolds(t, finished)
	})
	run("complete repeated after a lost reply succeeds and changes nothing", func(t *testing.T, b *bench) {
		finished := b.completed(t, "key", "first")
		require.NoError(t, b.Store.Complete(t.Context(), done(finished, "second"), long))
		b.requireHolds(t, finished)
	})
	run("complete of another owner's record is refused", func(t *testing.T, b *bench) {
		holder := b.held(t, "held", long)
		require.ErrorIs(t, b.Store.Complete(t.Context(), done(b.pending("held"), "x"), long), idempotency.ErrLost)
		b.requireHolds(t, holder)
		finished := b.completed(t, "finished", "answer")
		require.ErrorIs(t, b.Store.Complete(t.Context(), done(b.pending("finished"), "x"), long), idempotency.ErrLost)
		b.requireHolds(t, finished)
	})
	run("complete of an absent record is refused", func(t *testing.T, b *bench) {
		require.ErrorIs(t, b.Store.Complete(t.Context(), done(b.pending("key"), "x"), long), idempotency.ErrLost)
		require.Nil(t, b.look(t, "key"))
	})
}

func releaseCases(run cases) {
	run("a released key can be acquired at once", func(t *testing.T, b *bench) {
		require.NoError(t, b.Store.Release(t.Context(), b.held(t, "key", long)))
		require.Nil(t, b.look(t, "key"))
	})
	run("release repeated after a lost reply succeeds", func(t *testing.T, b *bench) {
		pending := b.held(t, "key", long)
		require.NoError(t, b.Store.Release(t.Context(), pending))
		require.NoError(t, b.Store.Release(t.Context(), pending))
	})
	run("release of another owner's key is refused", func(t *testing.T, b *bench) {
		holder := b.held(t, "key", long)
		require.ErrorIs(t, b.Store.Release(t.Context(), b.pending("key")), idempotency.ErrLost)
		b.requireHolds(t, holder)
	})
	run("release of an expired record succeeds", func(t *testing.T, b *bench) {
		b.held(t, "key", short)
		b.pass(t)
		require.NoError(t, b.Store.Release(t.Context(), b.pending("key")))
	})
	run("release of a finished record is refused, also for its owner", func(t *testing.T, b *bench) {
		finished := b.completed(t, "key", "answer")
		pending := b.pending("key")
		require.ErrorIs(t, b.Store.Release(t.Context(), pending), idempotency.ErrLost)
		pending.Owner = finished.Owner
		require.ErrorIs(t, b.Store.Release(t.Context(), pending), idempotency.ErrLost)
		b.requireHolds(t, finished)
	})
}
