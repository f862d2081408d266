package authoritytest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency/authority"
)

func expiryCases(run cases) {
	// Purged or not, a key whose time is up is the same.
	for _, purged := range []bool{false, true} {
		when := map[bool]string{false: "before", true: "after"}[purged] + " it is purged"
		expire := func(b *bench, by time.Duration) {
			b.age(by)
			if purged {
				_, err := b.Purge(b.ctx, 10)
				require.NoError(b, err)
			}
		}
		run("a key is free when its time is up, "+when, func(b *bench) {
			b.once(b.claim("k", "a"), b.note("n"))
			expire(b, 2*time.Hour)
			_, err := b.Look(b.ctx, b.scope, "k")
			require.ErrorIs(b, err, authority.ErrNotFound)
			require.False(b, b.once(b.claim("k", "b"), b.note("m")).Replayed)
		})
		run("a tombstone refuses a second effect, "+when, func(b *bench) {
			claim := b.claim("k", "a")
			claim.TombstoneTTL = 4 * time.Hour
			b.once(claim, b.note("n"))
			expire(b, 2*time.Hour)
			_, err := b.Once(b.ctx, claim, b.note("m"))
			require.Equal(b, "/notes/n", b.taken(authority.Expired, err).Resource)
			_, err = b.Once(b.ctx, b.claim("k", "b"), b.note("m"))
			_ = b.taken(authority.Reused, err)
			known, err := b.Look(b.ctx, b.scope, "k")
			require.NoError(b, err)
			require.Equal(b, authority.StateExpired, known.State)
			require.Equal(b, authority.Answer{Status: 201, Resource: "/notes/n"}, known.Answer.Answer)
			require.Equal(b, 1, b.notes())
			expire(b, 3*time.Hour)
			require.False(b, b.once(b.claim("k", "b"), b.note("m")).Replayed)
		})
		run("what is in progress does not expire, "+when, func(b *bench) {
			claim := b.claim("k", "a")
			begun := b.begin(claim)
			expire(b, 1000*time.Hour)
			attempt, _, err := b.Begin(b.ctx, claim, b.note("n"), nil)
			require.NoError(b, err)
			require.Equal(b, begun.ID, attempt.ID)
			require.EqualValues(b, 2, attempt.Number)
			_, err = b.Settle(b.ctx, *attempt, b.note("n"))
			require.NoError(b, err)
			require.InDelta(b, time.Hour, b.once(claim, b.note("m")).KeptFor, float64(time.Minute)) // from the settlement on
		})
	}
}
