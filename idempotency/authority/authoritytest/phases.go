package authoritytest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency/authority"
)

func phaseCases(run cases) {
	run("what was begun is settled and replayed", func(b *bench) {
		claim := b.claim("k", "a")
		begun := b.begin(claim)
		require.EqualValues(b, 1, begun.Number)
		require.Equal(b, begun.BegunAt, begun.TakenAt)
		known, err := b.Look(b.ctx, b.scope, "k")
		require.NoError(b, err)
		require.Equal(b, authority.Known{State: authority.StateInProgress, Fingerprint: claim.Fingerprint, Operation: "test", ID: begun.ID,
			CreatedAt: begun.BegunAt, ExpiresAt: known.ExpiresAt}, known)
		settled, err := b.Settle(b.ctx, begun, b.note("settled"))
		require.NoError(b, err)
		require.False(b, settled.Replayed)
		attempt, replayed, err := b.Begin(b.ctx, claim, b.note("n"), nil)
		require.NoError(b, err)
		require.Nil(b, attempt)
		require.Equal(b, settled.Answer, replayed.Answer)
		require.True(b, replayed.Replayed)
		require.Equal(b, 2, b.notes())
	})
	run("what was begun cannot be deleted, and what was settled can", func(b *bench) {
		claim := b.claim("k", "a")
		begun := b.begin(claim)
		deletion := fmt.Sprintf("DELETE FROM %s WHERE %s = $1", b.Table, b.Column)
		_, err := b.Pool.Exec(b.ctx, deletion, b.scope)
		require.ErrorContains(b, err, "never deleted")
		_, err = b.Settle(b.ctx, begun, b.note("settled"))
		require.NoError(b, err)
		deleted, err := b.Pool.Exec(b.ctx, deletion, b.scope)
		require.NoError(b, err)
		require.EqualValues(b, 1, deleted.RowsAffected())
	})
	run("what is not begun is answered at once", func(b *bench) {
		attempt, result, err := b.Begin(b.ctx, b.claim("k", "a"), b.noting("n", authority.Refused(answer(409, "paid"))), nil)
		require.NoError(b, err)
		require.Nil(b, attempt)
		require.Equal(b, 409, result.Status)
	})
	run("a retry takes the next attempt, and only the newest one settles", func(b *bench) {
		claim := b.claim("k", "a")
		first := b.begin(claim)
		second, _, err := b.Begin(b.ctx, claim, b.note("n"), nil)
		require.NoError(b, err)
		require.Equal(b, first.ID, second.ID)
		require.EqualValues(b, 2, second.Number)
		require.False(b, second.TakenAt.Before(first.TakenAt))

		_, err = b.Settle(b.ctx, first, b.note("first"))
		_ = b.taken(authority.InProgress, err)
		_, err = b.Settle(b.ctx, *second, b.note("second"))
		require.NoError(b, err)
		late, err := b.Settle(b.ctx, first, b.note("first"))
		require.NoError(b, err)
		require.True(b, late.Replayed)
		require.Equal(b, "second", string(late.Body))
		require.Equal(b, 2, b.notes())
		require.Equal(b, authority.Counters{Takeovers: 1, Overtaken: 2}, b.Counters())
	})
	run("the settlement decides, and not the look before it", func(b *bench) {
		claim := b.claim("k", "a")
		first := b.begin(claim)
		_, err := b.Settle(b.ctx, first, func(ctx context.Context, tx *authority.Tx) (authority.Outcome, error) {
			outcome, err := b.note("first")(ctx, tx)
			_, _, taken := b.Begin(b.ctx, claim, b.note("n"), nil)
			return outcome, errors.Join(err, taken)
		})
		_ = b.taken(authority.InProgress, err)
		require.Equal(b, 1, b.notes())
	})
	run("of concurrent settlements one is committed", func(b *bench) {
		begun := b.begin(b.claim("k", "a"))
		fresh := 0
		for _, replayed := range inParallel(4, func(i int) bool {
			result, err := b.SettleAny(b.ctx, begun, b.note(fmt.Sprint(i)))
			return err != nil || result.Replayed
		}) {
			if !replayed {
				fresh++
			}
		}
		require.Equal(b, 1, fresh)
		require.Equal(b, 2, b.notes())
	})
	run("a key in progress is nobody else's", func(b *bench) {
		begun := b.begin(b.claim("k", "a"))
		_, _, err := b.Begin(b.ctx, b.claim("k", "b"), b.note("n"), nil)
		require.Equal(b, begun.BegunAt, b.taken(authority.InProgress, err).Since)
		_, err = b.Once(b.ctx, b.claim("k", "a"), b.note("n"))
		_ = b.taken(authority.InProgress, err)
	})
	run("an event settles whichever attempt", func(b *bench) {
		claim := b.claim("k", "a")
		begun := b.begin(claim)
		found, err := b.Find(b.ctx, begun.ID)
		require.NoError(b, err)
		require.Equal(b, begun, found)
		_, _, err = b.Begin(b.ctx, claim, b.note("n"), nil)
		require.NoError(b, err)
		_, err = b.SettleAny(b.ctx, found, b.note("event"))
		require.NoError(b, err)
		again, err := b.SettleAny(b.ctx, found, b.note("again"))
		require.NoError(b, err)
		require.Equal(b, "event", string(again.Body))
		_, err = b.Find(b.ctx, begun.ID)
		require.ErrorIs(b, err, authority.ErrNotFound)
	})
	run("a settlement without an outcome leaves the key in progress", func(b *bench) {
		begun := b.begin(b.claim("k", "a"))
		_, err := b.Settle(b.ctx, begun, b.noting("seen", authority.Outcome{}))
		require.NoError(b, err)
		require.Equal(b, 2, b.notes())
		_, err = b.Settle(b.ctx, begun, b.note("n"))
		require.NoError(b, err)
	})
	run("what was begun is not refused for now", func(b *bench) {
		begun := b.begin(b.claim("k", "a"))
		_, err := b.Settle(b.ctx, begun, b.noting("n", authority.RefusedForNow(answer(409, "n"))))
		require.Error(b, err)
		_, err = b.Find(b.ctx, begun.ID)
		require.NoError(b, err)
	})
	run("rows of the user are resumed in the transaction of the takeover", func(b *bench) {
		claim := b.claim("k", "a")
		b.begin(claim)
		resume := func(err error) authority.Resume {
			return func(ctx context.Context, tx *authority.Tx) {
				wrote := queue(ctx, tx, insert, b.scope, "resumed "+time.Now().String())
				tx.AfterSend(func() error {
					_, failed := wrote.Exec()
					return errors.Join(failed, err)
				})
			}
		}
		attempt, _, err := b.Begin(b.ctx, claim, b.note("n"), resume(nil))
		require.NoError(b, err)
		require.EqualValues(b, 2, attempt.Number)
		require.Equal(b, 2, b.notes())
		_, _, err = b.Begin(b.ctx, claim, b.note("n"), resume(pgx.ErrNoRows))
		_ = b.taken(authority.InProgress, err)
	})
	run("concurrent retries take different attempts", func(b *bench) {
		claim := b.claim("k", "a")
		b.begin(claim)
		type outcome struct {
			*authority.Attempt
			err error
		}
		numbers := map[int32]bool{}
		for _, o := range inParallel(8, func(int) outcome {
			attempt, _, err := b.Begin(b.ctx, claim, b.note("n"), nil)
			return outcome{attempt, err}
		}) {
			require.NoError(b, o.err)
			numbers[o.Number] = true
		}
		require.Len(b, numbers, 8)
	})
	run("a refusal for now of what was begun meanwhile goes on with it", func(b *bench) {
		claim := b.claim("k", "a")
		attempt, result, err := b.Begin(b.ctx, claim, func(ctx context.Context, tx *authority.Tx) (authority.Outcome, error) {
			if err := tx.Send(ctx); err != nil {
				return authority.Outcome{}, err
			}
			b.begin(claim)
			return authority.RefusedForNow(answer(409, "being paid")), nil
		}, nil)
		require.NoError(b, err)
		require.False(b, result.Correctable)
		require.EqualValues(b, 2, attempt.Number)
	})
	run("a retry leaves an attempt alone within its lease", func(b *bench) {
		claim := b.claim("k", "a")
		first := b.begin(claim)
		leased := authority.New(b.Pool, authority.WithTable(b.Table, b.Column), authority.WithLease(time.Hour))
		begin := func() (*authority.Attempt, error) {
			attempt, _, err := leased.Begin(b.ctx, claim, b.note("n"), nil)
			return attempt, err
		}
		_, err := begin()
		_ = b.taken(authority.InProgress, err)
		require.NoError(b, b.PutOff(b.ctx, first, time.Hour)) // its outcome is unknown
		second, err := begin()
		require.NoError(b, err)
		require.EqualValues(b, 2, second.Number)
		_, err = begin()
		_ = b.taken(authority.InProgress, err)
		b.age(2 * time.Hour)
		third, err := begin()
		require.NoError(b, err)
		require.EqualValues(b, 3, third.Number)
	})
	run("an operation at a provider needs a key", func(b *bench) {
		_, _, err := b.Begin(b.ctx, authority.Claim{}, b.note("n"), nil)
		require.ErrorIs(b, err, authority.ErrNoKey)
		_, err = b.Settle(b.ctx, authority.Attempt{}, b.note("n"))
		require.ErrorIs(b, err, authority.ErrNoKey)
		require.Zero(b, b.notes())
	})
}
