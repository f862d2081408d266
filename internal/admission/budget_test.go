package admission

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

const day = 24 * time.Hour

func isSpent(b *Budget) bool {
	_, spent := b.Spent(ada)
	return spent
}

func TestBudget_BoundsKeysAndBytesOfEachAccount(t *testing.T) {
	t.Parallel()
	for name, answers := range map[string][]int{"keys": {1, 1, 1}, "bytes": {900, 100}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := NewBudget(3, 1000)
			for _, bytes := range answers {
				require.False(t, isSpent(b))
				b.Keep(ada, bytes, day)
			}
			require.True(t, isSpent(b))
			_, spent := b.Spent(bob)
			require.False(t, spent, "another account has its own")
			require.InDelta(t, 1, b.Stats().Most, 0.001)
		})
	}
}

func TestBudget_IsFreeAgainWhenAnswersEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(2, 1000)
		b.Keep(ada, 1, 2*day) // a payment, and then an order that is forgotten before it
		b.Keep(ada, 1, day)
		wait, spent := b.Spent(ada)
		require.True(t, spent)
		require.InDelta(t, day, wait, float64(endsEvery))
		time.Sleep(wait - time.Nanosecond)
		require.True(t, isSpent(b))
		time.Sleep(1 * time.Nanosecond)
		require.False(t, isSpent(b), "one of two is forgotten")
		b.Keep(ada, 1, day)
		require.True(t, isSpent(b))
		time.Sleep(2 * day)
		require.Zero(t, b.Stats().Most)
		require.Empty(t, b.accounts, "what keeps nothing takes no memory")
	})
}

func TestBudget_TellsOfRefusalsOnceAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(1, 1)
		b.Keep(ada, 1, day)
		require.True(t, b.Refuse(ada))
		require.False(t, b.Refuse(ada))
		time.Sleep(tellEvery)
		require.True(t, b.Refuse(ada))
		require.EqualValues(t, 3, b.Stats().Refused)
	})
}
