package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/fault"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
	"github.com/oncepay/oncepay/loadtest/faults/witness"
)

// between is a run that excuses a rule, from one second to another.
func between(from, to time.Duration, rules ...books.Rule) []faultRun {
	return []faultRun{{Excuses: rules, Injected: from * time.Second, Healed: to * time.Second}}
}

func TestLostLeases_NeedAnExcuseAtTheTime(t *testing.T) {
	t.Parallel()
	losses := witness.Events{Losses: []witness.Event{{Since: 10 * time.Second, At: 15 * time.Second}}}
	require.Empty(t, leases(losses, between(12, 17, verify.LeaseKept)))
	require.Len(t, leases(losses, between(16, 17, verify.LeaseKept)), 1)
	require.Len(t, leases(losses, between(1, 9, verify.LeaseKept)), 1)
	found := leases(losses, between(9, 16, verify.WaitedFor))
	require.Len(t, found, 1)
	require.Equal(t, verify.LeaseKept, found[0].Rule)
}

func TestExcused_TakesNothingFromAKindThatSaysNothing(t *testing.T) {
	t.Parallel()
	for _, rule := range verify.Rules {
		require.False(t, excused(rule, between(0, 100), 1, 2), rule)
	}
}

func TestMovedWithoutRedis_FindsMoneyThatMoved(t *testing.T) {
	t.Parallel()
	down := []faultRun{{Breaks: []fault.Damage{fault.RedisDown}, Injected: 9, Held: 10, Healing: 20, Healed: 25}}
	paid := journal.Attempt{Operation: "payment", Status: 201, Invoke: 11, Return: 19}
	found := movedWithoutRedis([]journal.Attempt{paid}, down)
	require.Len(t, found, 1)
	require.Equal(t, verify.FailsClosed, found[0].Rule)

	early, late, order, refused := paid, paid, paid, paid
	early.Invoke, late.Return, order.Operation, refused.Status = 9, 22, "order", 503
	require.Empty(t, movedWithoutRedis([]journal.Attempt{early, late, order, refused}, down))
	down[0].NotFired = true
	require.Empty(t, movedWithoutRedis([]journal.Attempt{paid}, down))
}

func TestPassedOn_NeedsAnExcuseAtTheTime(t *testing.T) {
	t.Parallel()
	a := journal.Attempt{Via: "nginx", Invoke: 10 * time.Second, Return: 11 * time.Second}
	require.True(t, passedOn(a, between(9, 12, verify.WaitedFor)))
	require.True(t, passedOn(a, between(4, 6, verify.WaitedFor)), "its connections are still broken")
	require.False(t, passedOn(a, between(3, 4, verify.WaitedFor)))
	require.False(t, passedOn(a, between(9, 12, verify.LeaseKept)))
	a.Via = "api-1"
	require.False(t, passedOn(a, between(9, 12, verify.WaitedFor)))
}

func TestUnserved_FindsRequestsThatEndedWithTheirClient(t *testing.T) {
	t.Parallel()
	hungUp := []journal.Attempt{{
		Key: "k", Purpose: journal.HangUp, Error: "context deadline exceeded", Invoke: 10 * time.Second, Return: 10 * time.Second,
	}}
	released := releasesOf(witness.Events{Releases: []witness.Event{{At: 10500 * time.Millisecond, Record: "idempotency:a:k"}, {At: time.Minute, Record: "idempotency:a:k"}}})
	found := unserved(hungUp, released, nil)
	require.Len(t, found, 1)
	require.Equal(t, verify.HangUpServed, found[0].Rule)
	require.Len(t, unserved(hungUp, released, between(1, 99)), 1)

	require.Empty(t, unserved(hungUp, nil, nil), "it was completed")
	failed := map[string]time.Duration{"k": 13 * time.Second}
	require.Empty(t, unserved(hungUp, failed, nil), "it failed by itself: a lock was held for long")
	require.Empty(t, unserved(hungUp, released, between(1, 99, verify.HangUpServed)), "it could not be completed")
	hungUp[0].Purpose = journal.Alone
	require.Empty(t, unserved(hungUp, released, nil), "it is retried")
}

func TestForeignWrites_AreReported(t *testing.T) {
	t.Parallel()
	found := leases(witness.Events{Foreign: []witness.Event{{At: time.Second, Record: "idempotency:a:b", Detail: "x writes what is y's"}}}, nil)
	require.Len(t, found, 1)
	require.Equal(t, verify.OwnerOnly, found[0].Rule)
	require.Contains(t, found[0].Detail, "idempotency:a:b at 1.0s: x writes what is y's")
}
