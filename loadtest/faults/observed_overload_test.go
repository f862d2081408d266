package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/fault"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
	"github.com/oncepay/oncepay/loadtest/faults/workload"
)

// repeated is so many requests in the tenth second that have an answer, some of which were turned
// away.
func repeated(all, away int) []journal.Attempt {
	var attempts []journal.Attempt
	for n := range all {
		key := fmt.Sprint(n)
		first := journal.Attempt{Key: key, Status: 201, Invoke: 9 * time.Second, Return: 9*time.Second + 1}
		again := journal.Attempt{Key: key, Status: 201, Replayed: true, Invoke: 10 * time.Second, Return: 10*time.Second + 1}
		if n < away {
			again.Status, again.Code = 503, "overloaded"
		}
		attempts = append(attempts, first, again)
	}
	return attempts
}

func TestOverloads_WantsRepeatedRequestsAnswered(t *testing.T) {
	t.Parallel()
	crowd := faultRun{Breaks: []fault.Damage{fault.Overloads}, Injected: 9500 * time.Millisecond, Healed: 11 * time.Second}
	found := overloads(repeated(100, 30), books.Books{}, nil, []faultRun{crowd})
	require.Len(t, found, 1)
	require.Equal(t, verify.AnsweredFirst, found[0].Rule)
	require.Contains(t, found[0].Detail, "30 of 100 requests")

	require.Empty(t, overloads(repeated(100, 25), books.Books{}, nil, []faultRun{crowd}), "a few")
	require.Empty(t, overloads(repeated(20, 20), books.Books{}, nil, []faultRun{crowd}), "too few to be a share")
	require.Empty(t, overloads(repeated(100, 30), books.Books{}, nil, nil), "no overload was made")
	flush := faultRun{Injected: time.Second, Healed: 8 * time.Second}
	require.Empty(t, overloads(repeated(100, 30), books.Books{}, nil, []faultRun{crowd, flush}), "another fault had just ended")
}

// What was turned away before the key had an answer, or has never got one, does not count.
func TestOverloads_CountsRequestsThatHadAnAnswer(t *testing.T) {
	t.Parallel()
	crowd := faultRun{Breaks: []fault.Damage{fault.Overloads}, Injected: 9500 * time.Millisecond, Healed: 11 * time.Second}
	early, none := repeated(50, 50), repeated(50, 50)
	for i := range early {
		early[i].Key, none[i].Key = "early "+early[i].Key, "none "+none[i].Key
		if early[i].Status == 201 {
			early[i].Invoke, early[i].Return, none[i].Status = 10*time.Second+2, 10*time.Second+3, 503
		}
	}
	require.Empty(t, overloads(slices.Concat(early, none, repeated(100, 25)), books.Books{}, nil, []faultRun{crowd}))
	found := overloads(slices.Concat(early, none, repeated(100, 26)), books.Books{}, nil, []faultRun{crowd})
	require.Len(t, found, 1)
	require.Contains(t, found[0].Detail, "26 of 100 requests")
}

// slowPayers are 80 payments at one replica, so many of which wait for the provider at once, and an
// order that is served whenever one of them is answered.
func slowPayers(atOnce int) (attempts []journal.Attempt) {
	for n := range 80 {
		came := 10*time.Second + time.Duration(n/atOnce)*workload.PaymentTakes
		a := journal.Attempt{Purpose: journal.SlowPayer, Status: 201, Invoke: came, Return: came + workload.PaymentTakes}
		payment, order, away := a, a, a
		payment.Key, payment.Operation = fmt.Sprint("payment", n), "payment"
		order.Key, order.Operation, order.Return = fmt.Sprint("order", n), "order", came+time.Second
		away.Key, away.Operation, away.Status, away.Code = fmt.Sprint("away", n), "payment", 503, "overloaded"
		attempts = append(attempts, payment, order, away)
	}
	return attempts
}

func TestOverloads_WantsOrdersServedBesideSlowPayments(t *testing.T) {
	t.Parallel()
	slow := faultRun{Breaks: []fault.Damage{fault.PaymentsWait}, Injected: 9500 * time.Millisecond, Healed: 60 * time.Second}
	found := overloads(slowPayers(32), books.Books{}, nil, []faultRun{slow})
	require.Len(t, found, 1)
	require.Equal(t, verify.RoomLeft, found[0].Rule)
	require.Contains(t, found[0].Detail, "of 80 payments no more than 32 waited for the provider when an order was served")

	require.Empty(t, overloads(slowPayers(33), books.Books{}, nil, []faultRun{slow}), "more than slots can have")
	alone := slices.DeleteFunc(slowPayers(33), func(a journal.Attempt) bool { return a.Operation == "order" })
	require.Len(t, overloads(alone, books.Books{}, nil, []faultRun{slow}), 1, "no order was served")
	require.Empty(t, overloads(slowPayers(32)[:3*32], books.Books{}, nil, []faultRun{slow}), "too few payments to tell")
	crowd := faultRun{Breaks: []fault.Damage{fault.Overloads}, Injected: 9 * time.Second, Healed: 60 * time.Second}
	require.Empty(t, overloads(slowPayers(32), books.Books{}, nil, []faultRun{slow, crowd}), "there was more to do than that")
}

func TestOverloads_WantsOthersServedBesideUnfinishedRequests(t *testing.T) {
	t.Parallel()
	halves := faultRun{Breaks: []fault.Damage{fault.StaysUnfinished}, Injected: 9500 * time.Millisecond, Healed: 11 * time.Second}
	attempts := func(away int, via string) []journal.Attempt {
		all := repeated(100, away)
		for i := range all {
			all[i].Via = via
		}
		return all
	}
	found := overloads(attempts(11, "nginx"), books.Books{}, nil, []faultRun{halves})
	require.Len(t, found, 1)
	require.Equal(t, verify.OnlyWholeCount, found[0].Rule)
	require.Contains(t, found[0].Detail, "11 of 100 requests")

	require.Empty(t, overloads(attempts(10, "nginx"), books.Books{}, nil, []faultRun{halves}), "a few")
	require.Empty(t, overloads(attempts(11, "api-1"), books.Books{}, nil, []faultRun{halves}), "nginx was not asked")
	require.Empty(t, overloads(attempts(11, "nginx"), books.Books{}, nil, nil), "there were none")
}

func TestOverloads_WantsAllServedBesideSlowReaders(t *testing.T) {
	t.Parallel()
	unread := faultRun{Breaks: []fault.Damage{fault.StaysUnread}, Injected: 9500 * time.Millisecond, Healed: 11 * time.Second}
	for away, violations := range map[int]int{10: 0, 11: 1} {
		attempts := repeated(100, away)
		for i := range attempts {
			attempts[i].Via = "nginx"
		}
		require.Len(t, overloads(attempts, books.Books{}, nil, []faultRun{unread}), violations)
	}
}

func TestOverloads_WantsOthersServedBesideAFlood(t *testing.T) {
	t.Parallel()
	for damage, detail := range map[fault.Damage]string{
		fault.AccountFloods: "one account asks for more than its share, 11 of 100 requests", fault.StrangersFlood: "strangers send unknown API keys, 11 of 100 requests",
	} {
		flood := faultRun{Breaks: []fault.Damage{damage}, Injected: 9500 * time.Millisecond, Healed: 11 * time.Second}
		beside := func(away int) []journal.Attempt {
			greedy := journal.Attempt{Account: "greedy", Key: "g", Purpose: journal.Greedy, Status: 503, Code: "overloaded",
				Invoke: 10 * time.Second, Return: 10*time.Second + 1}
			return append(repeated(100, away), slices.Repeat([]journal.Attempt{greedy}, 100)...)
		}
		found := overloads(beside(11), books.Books{}, nil, []faultRun{flood})
		require.Len(t, found, 1)
		require.Equal(t, verify.OthersServed, found[0].Rule)
		require.Contains(t, found[0].Detail, detail)
		require.Empty(t, overloads(beside(10), books.Books{}, nil, []faultRun{flood}), "a few")
		require.Empty(t, overloads(beside(11), books.Books{}, nil, nil), "there was none")
	}
	limited := repeated(100, 0)
	for i := range 11 {
		limited[2*i+1].Status, limited[2*i+1].Code = 429, "rate_limited" // the second one of a key
	}
	flood := faultRun{Breaks: []fault.Damage{fault.AccountFloods}, Injected: 9500 * time.Millisecond, Healed: 11 * time.Second}
	require.Len(t, overloads(limited, books.Books{}, nil, []faultRun{flood}), 1, "a 429 is a refusal, too")
}

func TestOverloads_FindsWhatATurnedAwayRequestLeft(t *testing.T) {
	t.Parallel()
	away := []journal.Attempt{{Key: "k", Via: "nginx", Status: 503, Code: "overloaded", Invoke: 10 * time.Second, Return: 11 * time.Second}}
	releases := map[string]time.Duration{"k": time.Second}
	found := overloads(away, books.Books{}, releases, nil)
	require.Len(t, found, 1)
	require.Equal(t, verify.TurnedAwayClean, found[0].Rule)
	require.Empty(t, overloads(away, books.Books{}, nil, nil))
	require.Empty(t, overloads(away, books.Books{}, releases, between(9, 12, verify.WaitedFor)), "nginx may have passed it on")
}
