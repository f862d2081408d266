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

var ada, bob, eve, eve0, eve1 = uuid.New(), uuid.New(), uuid.New(), uuid.New(), uuid.New()

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

// wait has so many requests of an account wait for a slot.
func wait(t *testing.T, l *Limiter, n int, class Class, account uuid.UUID) []entering {
	t.Helper()
	var all []entering
	for range n {
		one := startEntering(t, l, class, account)
		require.True(t, one.isWaiting())
		all = append(all, one)
	}
	return all
}

// outcomes counts those that have a slot, and those that were turned away.
func outcomes(all []entering) (admitted, refused int) {
	for _, one := range all {
		if one.isWaiting() {
			continue
		}
		slot := <-one.slot
		one.slot <- slot
		if slot != nil {
			admitted++
		} else {
			refused++
		}
	}
	return admitted, refused
}

func TestLimiter_KeepsSlotsFromOneAccount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(slots)
		fill(t, l, ada)
		require.Nil(t, enter(t, l, Begun, ada), "one account gets no more, whatever its class")
		require.NotNil(t, enter(t, l, List, bob))
		require.NotNil(t, enter(t, l, List, eve))
	})
}

// TestLimiter_SharesAmongGreedyAccounts: two take all that they get, and slots come free one after
// the other. All get the same, and the third one does not wait.
func TestLimiter_SharesAmongGreedyAccounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(slots)
		running := map[uuid.UUID][]*Slot{ada: fill(t, l, ada)}
		waiting := map[uuid.UUID][]entering{}
		for _, account := range []uuid.UUID{ada, bob} {
			for range 20 {
				waiting[account] = append(waiting[account], startEntering(t, l, Change, account))
			}
		}
		require.NotNil(t, enter(t, l, Change, eve), "the last slot is for who has none")
		running[bob] = append(running[bob], <-waiting[bob][0].slot)
		waiting[bob] = waiting[bob][1:]
		for range 15 { // the account that has the most ends one
			most := ada
			if len(running[bob]) > len(running[ada]) {
				most = bob
			}
			running[most][0].Leave()
			running[most] = running[most][1:]
			synctest.Wait()
			for account, all := range waiting {
				for len(all) > 0 && !all[0].isWaiting() {
					running[account], all = append(running[account], <-all[0].slot), all[1:]
				}
				waiting[account] = all
			}
		}
		require.InDelta(t, len(running[ada]), len(running[bob]), 1)
		require.GreaterOrEqual(t, len(running[ada])+len(running[bob]), 6)
		time.Sleep(patience)
	})
}

// TestLimiter_LookUpsOfOneDoNotBeatPaymentsOfAnother, although they are of the first class.
func TestLimiter_LookUpsOfOneDoNotBeatPaymentsOfAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(slots)
		taken := fill(t, l, eve)
		taken = append(taken, enter(t, l, Change, eve0), enter(t, l, Change, eve1))
		lookUps := wait(t, l, 20, Begun, ada)
		payments := wait(t, l, 5, Money, bob)
		for n := range 8 {
			taken[n].Leave()
		}
		synctest.Wait()
		first, _ := outcomes(lookUps)
		second, _ := outcomes(payments)
		require.InDelta(t, first, second, 1)
		require.GreaterOrEqual(t, second, 3)
		time.Sleep(patience)
	})
}

// TestLimiter_OneAtATimeDoesNotAlwaysComeFirst: who comes back takes its turn behind those who
// wait.
func TestLimiter_OneAtATimeDoesNotAlwaysComeFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(2)
		held := enter(t, l, Change, eve)
		require.NotNil(t, held)
		last := enter(t, l, Change, eve0)
		payments, lookUp, paid := wait(t, l, 6, Money, bob), startEntering(t, l, Begun, ada), 0
		for range 6 {
			last.Leave()
			synctest.Wait()
			if lookUp.isWaiting() {
				last = <-payments[paid].slot
				paid++
			} else {
				last = <-lookUp.slot
				lookUp = startEntering(t, l, Begun, ada)
			}
		}
		require.Equal(t, 3, paid)
		time.Sleep(patience)
	})
}

func TestLimiter_ANewcomerDisplacesTheNewestOfTheLargestHolder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(slots)
		fill(t, l, ada)
		fill2 := []*Slot{enter(t, l, Change, eve0), enter(t, l, Change, eve1)}
		require.NotContains(t, fill2, nil)
		greedy := wait(t, l, slots*queuePerSlot, Begun, ada)
		began := time.Now()
		require.Nil(t, enter(t, l, Begun, ada), "its part is all, and full")
		for _, account := range []uuid.UUID{bob, eve} {
			newcomer := startEntering(t, l, List, account)
			require.True(t, newcomer.isWaiting(), "it finds a seat")
		}
		_, refused := outcomes(greedy)
		require.Equal(t, 2, refused)
		_, refused = outcomes(greedy[len(greedy)-2:])
		require.Equal(t, 2, refused, "the newest")
		require.Equal(t, began, time.Now(), "at once")
		require.Equal(t, slots*queuePerSlot, l.Stats().Queued)
		time.Sleep(patience)
	})
}

// TestLimiter_AnAccountHasItsPartOfTheQueue, and lists have less of it than payments.
func TestLimiter_AnAccountHasItsPartOfTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const room = slots * queuePerSlot
		for class, part := range map[Class]int{Begun: room / 2, Money: room * 3 / 8, Change: room / 4, List: room / 8} {
			l := New(slots)
			fill(t, l, ada)
			enter(t, l, Change, eve0)
			enter(t, l, Change, eve1)
			wait(t, l, room, Begun, ada)
			wait(t, l, part, class, bob)
			require.Nil(t, enter(t, l, class, bob), class)
			time.Sleep(patience)
		}
	})
}

func TestLimiter_ReadsFewBodiesOfOneAccount(t *testing.T) {
	t.Parallel()
	l := New(slots)
	var end func()
	for range maxReading / 2 {
		end = l.Read(ada)
		require.NotNil(t, end)
	}
	require.Nil(t, l.Read(ada))
	require.NotNil(t, l.Read(bob))
	end()
	require.Nil(t, l.Read(ada), "bob's counts, too")
}

func TestLimiter_AnswersKnownKeysWithoutASlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(slots)
		fill(t, l, ada)
		require.NotNil(t, enter(t, l, Change, bob))
		require.NotNil(t, enter(t, l, Change, eve))
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
		known[1].Leave()
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
		for _, s := range []share{l.slots, l.waiting, l.replays, l.reading} {
			require.Empty(t, s.held)
		}
		require.Empty(t, l.queue.held)
		require.Empty(t, l.queue.served)
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
		var first, last *Slot
		for range maxWaiting / 2 {
			first, last = last, enter(t, l, Money, ada)
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
		first.Leave()
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
		for range room {
			startEntering(t, l, Money, ada)
		}
		require.Nil(t, enter(t, l, Money, ada), "at once")
		require.Equal(t, room, l.Stats().Waiting)
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
