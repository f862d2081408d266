package authoritytest

import (
	"context"
	"errors"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/authority"
)

// reuse settles what an attempt is at, lets the answer expire, and begins something else under its
// key, at the attempt with the same number.
func (b *bench) reuse(stale authority.Attempt, request string) authority.Attempt {
	b.Helper()
	_, err := b.SettleAny(b.ctx, stale, b.note("event"))
	require.NoError(b, err)
	b.age(2 * time.Hour)
	fresh := b.begin(b.claim("k", request))
	require.Equal(b, stale.Number, fresh.Number)
	return fresh
}

// reuseCases are about attempts whose process was paused until their key was used again. Numbers of
// attempts begin anew with each use, so what was begun is a part of the fence.
func reuseCases(run cases) {
	run("an attempt changes nothing of a later use of its key", func(b *bench) {
		for _, request := range []string{"a", "b"} {
			b.scope = b.New()
			stale := b.begin(b.claim("k", "a"))
			fresh := b.reuse(stale, request)
			for _, outcome := range []authority.Outcome{{}, authority.Done(answer(201, "stale")), authority.Refused(answer(402, "stale"))} {
				for _, settle := range []func(context.Context, authority.Attempt, authority.Run) (authority.Result, error){b.Settle, b.SettleAny} {
					_, err := settle(b.ctx, stale, b.noting("stale", outcome))
					if request == "a" {
						_ = b.taken(authority.InProgress, err) // as for any attempt that was overtaken
					} else {
						require.ErrorIs(b, err, authority.ErrUnknown)
					}
				}
			}
			require.NoError(b, b.PutOff(b.ctx, stale, 0))
			require.Empty(b, b.due())
			require.NoError(b, b.Hold(b.ctx, stale))
			held, err := b.Held(b.ctx, 10)
			require.NoError(b, err)
			require.Empty(b, held)
			settled, err := b.Settle(b.ctx, fresh, b.note("fresh"))
			require.NoError(b, err)
			require.False(b, settled.Replayed)
			require.Equal(b, 4, b.notes(), "two were begun and two were settled")
		}
	})
	run("the settlement compares what was begun, and not the look before it", func(b *bench) {
		stale := b.begin(b.claim("k", "a"))
		_, err := b.Settle(b.ctx, stale, func(ctx context.Context, tx *authority.Tx) (authority.Outcome, error) {
			outcome, err := b.note("stale")(ctx, tx)
			b.reuse(stale, "b")
			return outcome, err
		})
		require.ErrorIs(b, err, authority.ErrUnknown)
		require.Equal(b, 3, b.notes(), "two were begun, and an event settled the first")
	})
	run("an attempt names what was begun", func(b *bench) {
		begun := b.begin(b.claim("k", "a"))
		begun.ID = ""
		_, err := b.Settle(b.ctx, begun, b.note("n"))
		require.ErrorContains(b, err, "need the ID")
		require.ErrorContains(b, b.PutOff(b.ctx, begun, 0), "need the ID")
		require.ErrorContains(b, b.Hold(b.ctx, begun), "need the ID")
	})

	run("an attempt gets the answer of its own request, or none", func(b *bench) {
		for _, c := range reuses {
			for _, learned := range []bool{false, true} {
				b.Log(c.name, "learned:", learned)
				b.scope = b.New()
				claim := b.claim("k", "a")
				claim.TombstoneTTL = c.tombstone
				result, err := b.Operate(b.ctx, claim, b.beginning(), authority.Provider{
					Ask: func(ctx context.Context, a authority.Attempt) (authority.Run, error) {
						_, err := b.SettleAny(ctx, a, b.noting("event", authority.Refused(answer(402, "declined"))))
						require.NoError(b, err)
						b.age(2 * time.Hour)
						c.meanwhile(b)
						if !learned {
							return nil, errSilent
						}
						return b.note("late"), nil
					}})
				c.require(b, result, err)
			}
		}
	})
}

// reuses are what becomes of a key once the answer to an attempt's request, a decline, has expired,
// and what the attempt gets then.
var reuses = []struct {
	name      string
	tombstone time.Duration
	meanwhile func(b *bench)
	require   func(b *bench, result authority.Result, err error)
}{
	{"a tombstone", 4 * time.Hour, func(*bench) {}, func(b *bench, _ authority.Result, err error) {
		_ = b.taken(authority.Expired, err)
	}},
	{"a row that is not purged yet", 0, func(*bench) {}, requireUnknown},
	{"no row", 0, func(b *bench) {
		_, err := b.Purge(b.ctx, 10)
		require.NoError(b, err)
	}, requireUnknown},
	{"another request's answer", 0, func(b *bench) { b.once(b.claim("k", "b"), b.note("another")) }, requireUnknown},
	{"another request in progress", 0, func(b *bench) { b.begin(b.claim("k", "b")) }, requireUnknown},
	{"a refusal", 0, func(b *bench) {
		b.once(b.claim("k", "a"), b.noting("no", authority.RefusedForNow(answer(409, "no"))))
	}, requireUnknown},
	{"its own request's answer", 0, func(b *bench) { b.once(b.claim("k", "a"), b.note("again")) },
		func(b *bench, result authority.Result, err error) {
			require.NoError(b, err)
			require.True(b, result.Replayed)
			require.Equal(b, "again", string(result.Body))
		}},
}

// requireUnknown is a 503: a retry may help, and nothing is said of the outcome.
func requireUnknown(b *bench, _ authority.Result, err error) {
	b.Helper()
	require.NotErrorAs(b, err, new(*authority.Taken))
	if !errors.Is(err, idempotency.ErrUnavailable) {
		require.ErrorIs(b, err, authority.ErrUnknown)
	}
}
