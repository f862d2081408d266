package authoritytest

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency/authority"
)

func refusalCases(run cases) {
	run("a refusal for good is kept with its changes", func(b *bench) {
		claim := b.claim("k", "a")
		require.False(b, b.once(claim, b.noting("declined", authority.Refused(answer(402, "declined")))).Correctable)
		again := b.once(claim, b.note("n"))
		require.True(b, again.Replayed)
		require.Equal(b, 402, again.Status)
		require.Equal(b, 1, b.notes())
		known, err := b.Look(b.ctx, b.scope, "k")
		require.NoError(b, err)
		require.Equal(b, authority.StateFailed, known.State)
	})
	run("a refusal for good after a failed statement is kept alone", func(b *bench) {
		b.once(b.claim("first", "a"), b.note("n"))
		claim := b.claim("k", "a")
		insertTwice := func(ctx context.Context, tx *authority.Tx) (authority.Outcome, error) {
			if _, err := b.note("m")(ctx, tx); err != nil {
				return authority.Outcome{}, err
			}
			_, err := b.note("n")(ctx, tx)
			require.Error(b, err) // the note is there
			return authority.Refused(answer(409, "taken")), nil
		}
		require.False(b, b.once(claim, insertTwice).Replayed)
		require.True(b, b.once(claim, insertTwice).Replayed)
		require.Equal(b, 1, b.notes())
	})
	run("a refusal for now changes nothing and frees the key for later attempts", func(b *bench) {
		for _, refuse := range []authority.Run{
			b.noting("n", authority.RefusedForNow(answer(404, "none"))),
			func(ctx context.Context, tx *authority.Tx) (authority.Outcome, error) {
				queue(ctx, tx, insert, b.scope, "n")
				return authority.RefusedForNow(answer(404, "none")), nil
			},
		} {
			result := b.once(b.claim("k", "a"), refuse)
			require.Equal(b, authority.Result{Answer: answer(404, "none"), Correctable: true}, result)
			require.Zero(b, b.notes())
			_, err := b.Look(b.ctx, b.scope, "k")
			require.ErrorIs(b, err, authority.ErrNotFound)
		}
		require.False(b, b.once(b.claim("k", "corrected"), b.note("n")).Replayed)
	})
	run("an older copy of a refused request does not act", func(b *bench) {
		older := b.claim("k", "a")
		older.ArrivedAt = older.ArrivedAt.Add(-time.Minute)
		same := b.claim("k", "a")
		b.once(same, b.noting("n", authority.RefusedForNow(answer(404, "none"))))
		for _, copied := range []authority.Claim{older, same} {
			_, err := b.Once(b.ctx, copied, b.note("n"))
			_ = b.taken(authority.Older, err)
			_, _, err = b.Begin(b.ctx, copied, b.noting("n", authority.Begun(b.New())), nil)
			_ = b.taken(authority.Older, err)
		}
		require.Zero(b, b.notes())
	})
	run("a refusal for now does not free a key that was used meanwhile", func(b *bench) {
		claim := b.claim("k", "a")
		result := b.once(claim, func(ctx context.Context, tx *authority.Tx) (authority.Outcome, error) {
			if err := tx.Send(ctx); err != nil {
				return authority.Outcome{}, err
			}
			b.once(claim, b.note("first"))
			return authority.RefusedForNow(answer(404, "none")), nil
		})
		require.True(b, result.Replayed)
		require.Equal(b, "first", string(result.Body))
	})
}
