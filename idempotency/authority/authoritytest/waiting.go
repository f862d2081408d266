package authoritytest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency/authority"
)

// long outlives a case.
const long = time.Hour

func waitingCases(run cases) {
	run("what no attempt works on is due", func(b *bench) {
		claim := b.claim("k", "a")
		first := b.begin(claim)
		require.Empty(b, b.due())
		b.age(2 * long)
		second := b.due()
		require.Len(b, second, 1)
		require.EqualValues(b, 2, second[0].Number)
		require.Greater(b, second[0].Age(), long)
		require.Empty(b, b.due()) // it is under way
		_, err := b.Settle(b.ctx, first, b.note("first"))
		_ = b.taken(authority.InProgress, err)
		_, err = b.Settle(b.ctx, second[0], b.note("second"))
		require.NoError(b, err)
	})
	run("what is put off is due then", func(b *bench) {
		begun := b.begin(b.claim("k", "a"))
		require.NoError(b, b.PutOff(b.ctx, begun, 2*long))
		b.age(2 * long) // the grace no longer counts
		require.Empty(b, b.due())
		require.NoError(b, b.PutOff(b.ctx, begun, 0))
		require.Len(b, b.due(), 1)
		require.NoError(b, b.PutOff(b.ctx, begun, 0)) // an older attempt has no say
		require.Empty(b, b.due())
	})
	run("what is held waits for an event", func(b *bench) {
		claim := b.claim("k", "a")
		begun := b.begin(claim)
		require.NoError(b, b.Hold(b.ctx, begun))
		b.age(2 * long)
		require.Empty(b, b.due())
		_, _, err := b.Begin(b.ctx, claim, b.note("n"), nil)
		require.True(b, b.taken(authority.InProgress, err).Held)
		held, err := b.Held(b.ctx, 10)
		require.NoError(b, err)
		require.Len(b, held, 1)
		require.Equal(b, begun.ID, held[0].ID)
		b.begin(b.claim("new", "a"))
		unsettled, err := b.Unsettled(b.ctx, long)
		require.NoError(b, err)
		require.InDelta(b, 2*long, unsettled.Oldest, float64(time.Minute))
		require.Equal(b, authority.Unsettled{InProgress: 2, Overdue: 1, Held: 1, Oldest: unsettled.Oldest}, unsettled)
		_, err = b.SettleAny(b.ctx, held[0], b.note("settled"))
		require.NoError(b, err)
		require.True(b, b.once(claim, b.note("n")).Replayed)
	})
}

func (b *bench) due() []authority.Attempt {
	b.Helper()
	due, err := b.Due(b.ctx, long, 10)
	require.NoError(b, err)
	return due
}
