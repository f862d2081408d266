package authoritytest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/authority"
)

func onceCases(run cases) {
	run("a replay is the first answer, byte for byte", func(b *bench) {
		given := authority.Answer{Status: 201, Header: map[string]string{"ETag": `"7"`, "X-Text": "ü"}, Body: []byte{0, 0xff, '\n'}, Resource: "/a/b"}
		claim := b.claim("k", "a")
		claim.TraceParent = "first"
		first := b.once(claim, b.noting("n", authority.Done(given)))
		require.Equal(b, authority.Result{Answer: given}, first)
		claim.TraceParent = "second"
		again := b.once(claim, b.note("n"))
		require.InDelta(b, time.Hour, again.KeptFor, float64(time.Minute))
		require.Equal(b, authority.Result{Answer: given, Replayed: true, KeptFor: again.KeptFor, TraceParent: "first"}, again)
		require.Equal(b, 1, b.notes())
	})
	run("an empty body is an answer", func(b *bench) {
		claim := b.claim("k", "a")
		b.once(claim, b.noting("n", authority.Done(authority.Answer{Status: 204})))
		require.Equal(b, []byte{}, b.once(claim, b.note("n")).Body)
	})
	run("of concurrent requests one is executed", func(b *bench) {
		claim := b.claim("k", "a")
		type outcome struct {
			authority.Result
			err error
		}
		fresh := 0
		for _, o := range inParallel(8, func(i int) outcome {
			result, err := b.Once(b.ctx, claim, b.note(fmt.Sprint(i)))
			return outcome{result, err}
		}) {
			require.NoError(b, o.err)
			require.Equal(b, string(b.once(claim, b.note("late")).Body), string(o.Body))
			if !o.Replayed {
				fresh++
			}
		}
		require.Equal(b, 1, fresh)
		require.Equal(b, 1, b.notes())
	})
	run("the claim decides, and not the look before it", func(b *bench) {
		claim := b.claim("k", "a")
		result := b.once(claim, func(ctx context.Context, tx *authority.Tx) (authority.Outcome, error) {
			if err := tx.Send(ctx); err != nil {
				return authority.Outcome{}, err
			}
			require.Equal(b, "first", string(b.once(claim, b.note("first")).Body))
			return b.note("second")(ctx, tx)
		})
		require.True(b, result.Replayed)
		require.Equal(b, "first", string(result.Body))
		require.Equal(b, 1, b.notes())
	})
	run("queued statements are made in two round trips", func(b *bench) {
		claim := b.claim("k", "a")
		var now time.Time
		result := b.once(claim, func(ctx context.Context, tx *authority.Tx) (authority.Outcome, error) {
			read := queue(ctx, tx, "SELECT now()")
			tx.AfterSend(func() error { return read.QueryRow().Scan(&now) })
			if err := tx.Send(ctx); err != nil {
				return authority.Outcome{}, err
			}
			require.Equal(b, tx.Now(), now)
			queue(ctx, tx, insert, b.scope, "n")
			return authority.Done(answer(201, "n")), nil
		})
		require.False(b, result.Replayed)
		require.Equal(b, 1, b.notes())
	})
	run("a key of another request is refused", func(b *bench) {
		b.once(b.claim("k", "a"), b.note("n"))
		_, err := b.Once(b.ctx, b.claim("k", "b"), b.note("m"))
		_ = b.taken(authority.Reused, err)
		require.Equal(b, 1, b.notes())
	})
	run("a key belongs to its scope", func(b *bench) {
		b.once(b.claim("k", "a"), b.note("n"))
		other := b.claim("k", "b")
		other.Scope = b.New()
		require.False(b, b.once(other, b.note("m")).Replayed)
	})
	run("an error keeps nothing", func(b *bench) {
		broken := errors.New("broken")
		_, err := b.Once(b.ctx, b.claim("k", "a"), func(ctx context.Context, tx *authority.Tx) (authority.Outcome, error) {
			_, err := b.note("n")(ctx, tx)
			return authority.Outcome{}, errors.Join(err, broken)
		})
		require.ErrorIs(b, err, broken)
		_, err = b.Look(b.ctx, b.scope, "k")
		require.ErrorIs(b, err, authority.ErrNotFound)
		require.Zero(b, b.notes())
		require.False(b, b.once(b.claim("k", "b"), b.note("n")).Replayed)
	})
	run("a failed commit is an error, also if the request does not see it", func(b *bench) {
		_, err := b.Once(b.ctx, b.claim("k", "a"), func(ctx context.Context, tx *authority.Tx) (authority.Outcome, error) {
			_, _ = tx.Exec(ctx, "SELECT 1/0")
			return authority.Done(answer(201, "n")), nil
		})
		require.Error(b, err)
		_, err = b.Look(b.ctx, b.scope, "k")
		require.ErrorIs(b, err, authority.ErrNotFound)
	})
	run("a request without an outcome is not committed", func(b *bench) {
		_, err := b.Once(b.ctx, b.claim("k", "a"), b.noting("n", authority.Outcome{}))
		require.Error(b, err)
		require.Zero(b, b.notes())
	})
	run("what would not be an answer is not committed", func(b *bench) {
		for _, o := range []authority.Outcome{
			authority.Done(answer(502, "n")), authority.Refused(answer(0, "n")), authority.RefusedForNow(answer(500, "n")),
			authority.Begun("n"), // nothing would settle it
		} {
			_, err := b.Once(b.ctx, b.claim("k", "a"), b.noting("n", o))
			require.Error(b, err)
			require.NotErrorIs(b, err, idempotency.ErrUnavailable, "a retry does not help")
			_, err = b.Once(b.ctx, authority.Claim{}, b.noting("n", o))
			require.Error(b, err)
		}
		require.Zero(b, b.notes())
		require.False(b, b.once(b.claim("k", "a"), b.note("n")).Replayed)
	})
	run("a refusal after a failed statement is kept alone", func(b *bench) {
		claim := b.claim("k", "a")
		for _, replayed := range []bool{false, true} {
			result := b.once(claim, func(ctx context.Context, tx *authority.Tx) (authority.Outcome, error) {
				if _, err := b.note("n")(ctx, tx); err != nil {
					return authority.Outcome{}, err
				}
				_, err := tx.Exec(ctx, "SELECT 1/0")
				require.Error(b, err)
				return authority.Refused(answer(409, "taken")), nil
			})
			require.Equal(b, replayed, result.Replayed)
			require.Equal(b, "taken", string(result.Body))
		}
		require.Zero(b, b.notes())
	})
	run("a request without a key is executed each time", func(b *bench) {
		b.once(authority.Claim{}, b.note("n"))
		require.False(b, b.once(authority.Claim{}, b.note("m")).Replayed)
		require.Equal(b, 2, b.notes())
	})
	run("a request without a key is not executed once its client is gone", func(b *bench) {
		gone := authority.Claim{IsAbandoned: func() bool { return true }}
		nothing := func(context.Context, *authority.Tx) (authority.Outcome, error) { return authority.Outcome{}, nil }
		for _, run := range []authority.Run{b.note("n"), nothing} {
			_, err := b.Once(b.ctx, gone, run)
			require.ErrorIs(b, err, authority.ErrAbandoned)
		}
		asked := 0
		leaves := authority.Claim{IsAbandoned: func() bool { asked++; return asked == 2 }}
		_, err := b.Once(b.ctx, leaves, b.note("n"))
		require.ErrorIs(b, err, authority.ErrAbandoned, "it has left before the commit")
		claim := b.claim("k", "a")
		claim.IsAbandoned = gone.IsAbandoned
		b.once(claim, b.note("m")) // a retry gets the answer
		require.Equal(b, 1, b.notes())
	})
	run("a request that makes no statement is kept, too", func(b *bench) {
		claim := b.claim("k", "a")
		for _, replayed := range []bool{false, true} {
			result := b.once(claim, func(context.Context, *authority.Tx) (authority.Outcome, error) {
				return authority.Done(answer(200, "n")), nil
			})
			require.Equal(b, replayed, result.Replayed)
		}
	})
	run("what surrounds the commit is called in order", func(b *bench) {
		var calls []string
		note := func(call string) func() { return func() { calls = append(calls, call) } }
		b.once(b.claim("k", "a"), func(_ context.Context, tx *authority.Tx) (authority.Outcome, error) {
			tx.AfterCommit(note("after"))
			tx.BeforeCommit(func(context.Context) func() { note("before")(); return note("leave") })
			return authority.Done(answer(200, "n")), nil
		})
		require.Equal(b, []string{"before", "after", "leave"}, calls)
	})
	run("an attempt that is far from the database's clock claims nothing", func(b *bench) {
		for _, off := range []time.Duration{-authority.MaxRequestAge - time.Minute, authority.MaxRequestAge + time.Minute} {
			claim := b.claim("k", "a")
			claim.ArrivedAt = time.Now().Add(off)
			_, err := b.Once(b.ctx, claim, b.note("n"))
			require.ErrorIs(b, err, idempotency.ErrUnavailable)
		}
		require.Zero(b, b.notes())
	})
}

// queue queues one statement, as sqlc's batches do.
func queue(ctx context.Context, tx *authority.Tx, sql string, args ...any) pgx.BatchResults {
	batch := &pgx.Batch{}
	batch.Queue(sql, args...)
	return tx.SendBatch(ctx, batch)
}
