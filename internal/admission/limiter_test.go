package admission

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// most is a limit of 8 slots, and 2 in the reserve.
const most, limit, reserve = 10, 8, 2

var ada, bob, eve = uuid.New(), uuid.New(), uuid.New()

func isUnknown(context.Context) bool { return false }
func isKnown(context.Context) bool   { return true }

func enter(t *testing.T, l *Limiter, class Class, account uuid.UUID) *Slot {
	t.Helper()
	return l.Enter(t.Context(), class, account, isUnknown)
}

// fill takes all slots that one account can have.
func fill(t *testing.T, l *Limiter, account uuid.UUID) []*Slot {
	t.Helper()
	var slots []*Slot
	for range limit {
		slots = append(slots, enter(t, l, Change, account))
		require.NotNil(t, slots[len(slots)-1])
	}
	return slots
}

// entering is a request that waits for a slot in another goroutine.
type entering struct {
	slot chan *Slot
}

func startEntering(t *testing.T, l *Limiter, class Class, account uuid.UUID) entering {
	t.Helper()
	e := entering{make(chan *Slot, 1)}
	go func() { e.slot <- l.Enter(t.Context(), class, account, isUnknown) }()
	synctest.Wait()
	return e
}

func (e entering) isWaiting() bool { return len(e.slot) == 0 }

func TestLimiter_TurnsAwayWhenNothingMoves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(most)
		fill(t, l, ada)
		began := time.Now()
		require.Nil(t, enter(t, l, Change, ada))
		require.Equal(t, patience, time.Since(began))
		require.True(t, l.Busy())
		require.EqualValues(t, 1, l.Stats().TurnedAway[Change])
		require.EqualValues(t, limit, l.Stats().Admitted[Change])
		time.Sleep(afterglow)
		require.False(t, l.Busy())
	})
}

func TestLimiter_HandsASlotToTheFirstClass(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(most)
		slots := fill(t, l, ada)
		var waiting []entering
		for _, class := range []Class{List, Change, Money, Begun} { // in the order of arrival
			waiting = append(waiting, startEntering(t, l, class, ada))
		}
		require.Equal(t, 4, l.Stats().Queued)
		for n := range 4 {
			slots[n].Leave(false)
			synctest.Wait()
			for i, w := range waiting {
				require.Equal(t, i < 3-n, w.isWaiting(), "%d slots are free", n+1)
			}
		}
	})
}

func TestLimiter_TurnsAwayAtOnceWhatFindsNoRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(most)
		fill(t, l, ada)
		began, queued := time.Now(), 0
		for i, class := range []Class{List, Change, Money, Begun} {
			room := limit * queuePerSlot * (i + 1) / 4
			for ; queued < room; queued++ {
				require.True(t, startEntering(t, l, class, ada).isWaiting(), class)
			}
			require.Nil(t, enter(t, l, class, ada), class)
		}
		require.Equal(t, began, time.Now())
		time.Sleep(patience)
	})
}

func TestLimiter_KeepsSlotsForAccountsThatHoldFew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(most)
		slots := fill(t, l, ada)
		require.Nil(t, enter(t, l, Begun, ada), "one account does not get the reserve, whatever its class")
		require.NotNil(t, enter(t, l, List, bob))
		require.NotNil(t, enter(t, l, List, eve))

		first, second := startEntering(t, l, Change, ada), startEntering(t, l, Change, bob)
		slots[0].Leave(false)
		synctest.Wait()
		require.True(t, first.isWaiting())
		require.False(t, second.isWaiting(), "of one class, the account that holds fewer goes first")
		time.Sleep(patience)
	})
}

func TestLimiter_AnswersKnownKeysWithoutASlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(most)
		fill(t, l, ada)
		require.NotNil(t, enter(t, l, Change, bob))
		require.NotNil(t, enter(t, l, Change, bob)) // the reserve
		var known []*Slot
		for range places / 2 {
			s := l.Enter(t.Context(), Change, ada, isKnown)
			require.NotNil(t, s)
			known = append(known, s)
		}
		require.Nil(t, l.Enter(t.Context(), Change, ada, isKnown), "one account has half of the places at most")
		require.NotNil(t, l.Enter(t.Context(), Change, bob, isKnown))
		require.EqualValues(t, places/2+1, l.Stats().Admitted[Begun])
		known[0].Leave(false)
		require.NotNil(t, l.Enter(t.Context(), Change, ada, isKnown))
	})
}

func TestSlot_IsFreeWhileItsRequestIsParked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(most)
		slots := fill(t, l, ada)
		unpark, ok := Park(WithSlot(t.Context(), slots[0]))
		require.True(t, ok)
		require.Equal(t, 1, l.Stats().Placed)
		other := enter(t, l, Change, ada)
		require.NotNil(t, other)
		unpark() // what was begun is finished, over the limit if need be
		require.Equal(t, limit+1, l.Stats().InUse)
		require.Zero(t, l.Stats().Placed)
		for _, s := range append(slots, other) {
			s.Leave(false)
		}
		require.Equal(t, Stats{Limit: most, Admitted: l.Stats().Admitted, TurnedAway: l.Stats().TurnedAway}, l.Stats(), "nothing is held")
		require.Empty(t, l.held)
		require.Empty(t, l.placed)
		fill(t, l, ada)
	})
}

func TestPark_IsBoundedForAnAccount(t *testing.T) {
	t.Parallel()
	l := New(most)
	park := func(account uuid.UUID) bool {
		s := enter(t, l, Money, account)
		if s == nil {
			return false
		}
		_, ok := Park(WithSlot(t.Context(), s))
		return ok
	}
	for range places / 2 {
		require.True(t, park(ada))
	}
	require.True(t, park(bob))
	for range limit {
		s := enter(t, l, Change, ada)
		require.NotNil(t, s)
		_, ok := Park(WithSlot(t.Context(), s))
		require.False(t, ok, "and the slot is kept")
	}
	require.Nil(t, enter(t, l, Money, ada), "it would hold its slot for as long as the provider takes")
	unpark, ok := Park(t.Context())
	require.True(t, ok, "a request without a slot has nothing to give back")
	unpark()
}

func TestLimiter_FollowsHowLongRequestsTake(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(100)
		serve := func(took time.Duration, rounds int) {
			for range rounds {
				var slots []*Slot
				for len(slots) < l.adaptive.Limit() {
					slots = append(slots, enter(t, l, Change, ada))
				}
				time.Sleep(took)
				for _, s := range slots {
					s.Leave(true)
				}
			}
		}
		serve(10*time.Millisecond, 500)
		quick := l.Stats().Limit
		serve(200*time.Millisecond, 50)
		require.Less(t, l.Stats().Limit, quick-5, "the database has become slow")
		slow := l.Stats().Limit
		serve(10*time.Millisecond, 1000)
		require.Greater(t, l.Stats().Limit, slow)
	})
}

func TestLimiter_LeavesWithItsClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(most)
		fill(t, l, ada)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan *Slot)
		go func() { done <- l.Enter(ctx, Change, ada, isUnknown) }()
		synctest.Wait()
		cancel()
		require.Nil(t, <-done)
		require.Zero(t, l.Stats().Queued)
	})
}
