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

// Of 10 slots one account gets 8.
const slots, each = 10, 8

var ada, bob, eve = uuid.New(), uuid.New(), uuid.New()

func isUnknown(context.Context) Key    { return Unknown }
func isInProgress(context.Context) Key { return InProgress }
func isAnswered(context.Context) Key   { return Answered }

func enter(t *testing.T, l *Limiter, class Class, account uuid.UUID) *Slot {
	t.Helper()
	return l.Enter(t.Context(), class, account, false, isUnknown)
}

// fill takes all slots that one account can have.
func fill(t *testing.T, l *Limiter, account uuid.UUID) []*Slot {
	t.Helper()
	var taken []*Slot
	for range each {
		slot := enter(t, l, Change, account)
		require.NotNil(t, slot)
		taken = append(taken, slot)
	}
	return taken
}

// entering is a request that waits for a slot in another goroutine.
type entering struct {
	slot chan *Slot
}

func startEntering(t *testing.T, l *Limiter, class Class, account uuid.UUID) entering {
	t.Helper()
	e := entering{make(chan *Slot, 1)}
	go func() { e.slot <- l.Enter(t.Context(), class, account, false, isUnknown) }()
	synctest.Wait()
	return e
}

func (e entering) isWaiting() bool { return len(e.slot) == 0 }

func TestLimiter_TurnsAwayWhenNothingMoves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(slots)
		fill(t, l, ada)
		began := time.Now()
		require.Nil(t, enter(t, l, Change, ada))
		require.Equal(t, patience, time.Since(began))
		require.EqualValues(t, 1, l.Stats().TurnedAway[Change])
		require.EqualValues(t, each, l.Stats().Admitted[Change])
	})
}

func TestLimiter_HandsASlotToTheFirstClass(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(slots)
		taken := fill(t, l, ada)
		var waiting []entering
		for _, class := range []Class{List, Change, Money, Begun} { // in the order of arrival
			waiting = append(waiting, startEntering(t, l, class, ada))
		}
		require.Equal(t, 4, l.Stats().Queued)
		for n := range 4 {
			taken[n].Leave()
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
		l := New(slots)
		fill(t, l, ada)
		enter(t, l, Change, bob)
		enter(t, l, Change, bob)
		began, queued := time.Now(), 0
		for i, class := range []Class{List, Change, Money, Begun} {
			room := slots * queuePerSlot * (i + 1) / 4
			for ; queued < room; queued++ {
				require.True(t, startEntering(t, l, class, []uuid.UUID{ada, bob}[queued%2]).isWaiting(), class)
			}
			require.Nil(t, enter(t, l, class, ada), class)
		}
		require.Equal(t, began, time.Now())
		time.Sleep(patience)
	})
}

func TestLimiter_KeepsSlotsAndRoomFromOneAccount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(slots)
		taken := fill(t, l, ada)
		require.Nil(t, enter(t, l, Begun, ada), "one account gets no more, whatever its class")
		require.NotNil(t, enter(t, l, List, bob))
		require.NotNil(t, enter(t, l, List, eve))

		first, second := startEntering(t, l, Change, ada), startEntering(t, l, Change, bob)
		taken[0].Leave()
		synctest.Wait()
		require.True(t, first.isWaiting())
		require.False(t, second.isWaiting(), "of one class, the account that holds fewer goes first")
		for range mostOf(slots*queuePerSlot) - 1 {
			require.True(t, startEntering(t, l, Begun, ada).isWaiting())
		}
		began := time.Now()
		require.Nil(t, enter(t, l, Begun, ada), "one account gets four fifths of the queue")
		require.Equal(t, began, time.Now())
		require.True(t, startEntering(t, l, Begun, eve).isWaiting())
		time.Sleep(patience)
	})
}

func TestLimiter_AnswersKnownKeysWithoutASlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(slots)
		fill(t, l, ada)
		require.NotNil(t, enter(t, l, Change, bob))
		require.NotNil(t, enter(t, l, Change, bob))
		var known []*Slot
		for range maxReplays / 2 {
			s := l.Enter(t.Context(), Change, ada, false, isAnswered)
			require.NotNil(t, s)
			known = append(known, s)
		}
		require.Nil(t, l.Enter(t.Context(), Change, ada, false, isAnswered), "one account has half of them at most")
		require.NotNil(t, l.Enter(t.Context(), Change, bob, false, isAnswered))
		require.EqualValues(t, maxReplays/2+1, l.Stats().Admitted[Begun])
		known[0].Leave()
		require.NotNil(t, l.Enter(t.Context(), Change, ada, false, isAnswered))
	})
}

func TestSlot_IsFreeWhileItsRequestIsParked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(slots)
		payment := enter(t, l, Money, ada)
		unpark := Park(WithSlot(t.Context(), payment))
		require.Equal(t, []int{0, 1}, []int{l.Stats().InUse, l.Stats().Waiting})
		taken := fill(t, l, ada)
		unpark() // what was begun is finished, over the limit if need be
		require.Equal(t, each+1, l.Stats().InUse)
		for _, s := range append(taken, payment) {
			s.Leave()
		}
		require.Equal(t, Stats{Limit: slots, Admitted: l.Stats().Admitted, TurnedAway: l.Stats().TurnedAway}, l.Stats(), "nothing is held")
		for _, s := range []share{l.slots, l.waiting, l.replays, l.queued} {
			require.Empty(t, s.held)
		}
		fill(t, l, ada)
	})
}

// TestSlot_IsNotTakenByWhoWaits for another attempt, as far as that is known before.
func TestSlot_IsNotTakenByWhoWaits(t *testing.T) {
	t.Parallel()
	l := New(slots)
	slot := l.Enter(t.Context(), Change, ada, true, isInProgress)
	require.Equal(t, []int{0, 1}, []int{l.Stats().InUse, l.Stats().Waiting})
	slot.Leave()
	slot = l.Enter(t.Context(), Change, ada, true, isUnknown)
	require.Equal(t, []int{1, 0}, []int{l.Stats().InUse, l.Stats().Waiting})
	slot.Leave()
	require.Zero(t, l.Stats().InUse)
}

// TestLimiter_TurnsPaymentsAwayThatWouldKeepTheirSlots has a slow provider. Everything else of the
// account goes on.
func TestLimiter_TurnsPaymentsAwayThatWouldKeepTheirSlots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(slots)
		var last *Slot
		for range maxWaiting / 2 {
			last = enter(t, l, Money, ada)
			require.NotNil(t, last)
			Park(WithSlot(t.Context(), last))
		}
		began := time.Now()
		require.Nil(t, enter(t, l, Money, ada))
		require.Equal(t, began, time.Now())
		require.NotNil(t, l.Enter(t.Context(), Money, ada, false, isAnswered), "a payment that has an answer")
		require.NotNil(t, l.Enter(t.Context(), Money, ada, true, isAnswered), "the same, of a client that would wait")
		require.Nil(t, l.Enter(t.Context(), Money, ada, true, isInProgress))
		require.NotNil(t, enter(t, l, Change, ada))
		require.NotNil(t, enter(t, l, Money, bob))
		last.Leave()
		require.NotNil(t, enter(t, l, Money, ada))
	})
}

func TestLimiter_LeavesNoPlaceOfAPaymentThatIsTurnedAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(slots)
		fill(t, l, ada)
		require.Nil(t, enter(t, l, Money, ada), "after its patience")
		room := slots * queuePerSlot * 3 / 4
		for range mostOf(room) {
			startEntering(t, l, Money, ada)
		}
		require.Nil(t, enter(t, l, Money, ada), "at once")
		require.Equal(t, mostOf(room), l.Stats().Waiting)
		time.Sleep(patience)
		synctest.Wait()
		require.Zero(t, l.Stats().Waiting)
	})
}

func TestPark_NeedsASlotWithAPlace(t *testing.T) {
	t.Parallel()
	l := New(slots)
	Park(t.Context())()
	order := enter(t, l, Change, ada)
	unpark := Park(WithSlot(t.Context(), order))
	require.Equal(t, 1, l.Stats().InUse)
	unpark()
	require.Equal(t, 1, l.Stats().InUse)
}

func TestLimiter_LeavesWithItsClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(slots)
		fill(t, l, ada)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan *Slot)
		go func() { done <- l.Enter(ctx, Change, ada, false, isUnknown) }()
		synctest.Wait()
		cancel()
		require.Nil(t, <-done)
		require.Zero(t, l.Stats().Queued)
	})
}
