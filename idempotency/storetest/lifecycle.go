package storetest

import (
	"cmp"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
)

// situation is what a key has been through when an owner asks for something.
type situation struct {
	// isOwn says that the owner who asks was the first to acquire the key.
	isOwn bool
	// lease is what became of the first owner's.
	lease string
	// status is that of the record that is left, if any.
	status idempotency.Status
	// What Extend, Complete and Release then return.
	extend, complete, release error
}

const inProgress, completed, failed = idempotency.StatusInProgress, idempotency.StatusCompleted, idempotency.StatusFailed

var lost = idempotency.ErrLost

var situations = []situation{
	{true, "lasts", inProgress, nil, nil, nil},
	{true, "lasts", completed, lost, nil, lost},
	{true, "lasts", failed, lost, nil, lost},
	{true, "expired", "", lost, lost, nil},
	{true, "released", "", lost, lost, nil},
	{true, "taken over", inProgress, lost, lost, lost},
	{true, "taken over", completed, lost, lost, lost},
	{false, "lasts", inProgress, lost, lost, lost},
	{false, "lasts", completed, lost, lost, lost},
	{false, "expired", "", lost, lost, nil},
	{false, "released", "", lost, lost, nil},
}

// arrange returns the pending record of the owner who asks, and the record that is there, if any.
func (s situation) arrange(t *testing.T, b *bench) (pending idempotency.Record, there *idempotency.Record) {
	t.Helper()
	lease := long
	if s.lease == "expired" || s.lease == "taken over" {
		lease = short
	}
	left := b.held(t, "key", lease)
	pending = left
	if !s.isOwn {
		pending = b.pending("key")
	}
	switch s.lease {
	case "expired":
		b.pass(t)
		return pending, nil
	case "released":
		require.NoError(t, b.Store.Release(t.Context(), left))
		return pending, nil
	case "taken over":
		left = b.takeover(t, "key")
	}
	if s.status != inProgress {
		left = done(left, "answer")
		left.Status = s.status
		require.NoError(t, b.Store.Complete(t.Context(), left, long))
	}
	return pending, &left
}

// ownerCases take each step in each situation. Its own steps an owner may repeat, as a reply may be
// lost; what it has lost it can't change.
func ownerCases(run cases) {
	for _, s := range situations {
		whose := map[bool]string{true: "own", false: "another's"}[s.isOwn]
		for _, step := range []string{"acquire", "extend", "complete", "release"} {
			run(fmt.Sprintf("%s: %s lease %s, %s", step, whose, s.lease, cmp.Or(s.status, "no record")), func(t *testing.T, b *bench) {
				pending, left := s.arrange(t, b)
				switch step {
				case "acquire":
					existing, err := b.Store.Acquire(t.Context(), pending, long)
					require.NoError(t, err)
					mayRun := left == nil || s.extend == nil
					require.Equal(t, mayRun, existing == nil)
					if mayRun {
						left = &pending
					}
				case "extend":
					require.ErrorIs(t, b.Store.Extend(t.Context(), pending, 2*long), s.extend)
				case "complete":
					late := done(pending, "late")
					require.ErrorIs(t, b.Store.Complete(t.Context(), late, long), s.complete)
					if s.complete == nil && s.status == inProgress {
						left = &late
					}
				case "release":
					require.ErrorIs(t, b.Store.Release(t.Context(), pending), s.release)
					if s.release == nil {
						left = nil
					}
				}
				if left == nil {
					require.Nil(t, b.look(t, "key"), "there is no record")
				} else {
					b.requireHolds(t, *left)
				}
			})
		}
	}
}

func timeCases(run cases) {
	run("acquire returns the record that is there", func(t *testing.T, b *bench) {
		b.requireHolds(t, b.held(t, "key", long))
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
	run("a finished record ends with its ttl", func(t *testing.T, b *bench) {
		pending := b.held(t, "key", long)
		require.NoError(t, b.Store.Complete(t.Context(), done(pending, "answer"), short))
		b.requireHolds(t, b.takeover(t, "key"))
	})
	// A machine that stalls loses a short lease before the step, which is then tried again.
	outlives := func(t *testing.T, b *bench, step func(pending idempotency.Record) (idempotency.Record, error)) {
		t.Helper()
		var left idempotency.Record
		require.Eventually(t, func() bool {
			pending := b.pending("key")
			existing, err := b.Store.Acquire(t.Context(), pending, short)
			if err == nil && existing == nil {
				left, err = step(pending)
			}
			return err == nil && existing == nil
		}, patience, pollEvery)
		b.pass(t)
		b.requireHolds(t, left)
	}
	run("extend outlives the first lease", func(t *testing.T, b *bench) {
		outlives(t, b, func(pending idempotency.Record) (idempotency.Record, error) {
			return pending, b.Store.Extend(t.Context(), pending, long)
		})
	})
	run("a finished record outlives its lease", func(t *testing.T, b *bench) {
		outlives(t, b, func(pending idempotency.Record) (idempotency.Record, error) {
			return done(pending, "answer"), b.Store.Complete(t.Context(), done(pending, "answer"), long)
		})
	})
}
