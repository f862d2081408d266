package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/faults/nemesis"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
	"github.com/oncepay/oncepay/loadtest/faults/witness"
)

func TestLeasesAreLostForAReason(t *testing.T) {
	t.Parallel()
	began := time.Now()
	losses := []witness.Loss{{From: began.Add(10 * time.Second), To: began.Add(15 * time.Second)}}
	hurt := func(kind string, from, to time.Duration) []injury {
		return []injury{{Kind: kind, Injected: from * time.Second, Healed: to * time.Second}}
	}
	require.Empty(t, lost(losses, hurt("replica pause", 12, 17), began))
	require.Len(t, lost(losses, hurt("replica pause", 16, 17), began), 1)
	require.Len(t, lost(losses, hurt("replica pause", 1, 9), began), 1)
	found := lost(losses, hurt("request pause", 9, 16), began)
	require.Len(t, found, 1)
	require.Equal(t, verify.LeaseKept, found[0].Rule)

	before := hurt("request pause", 9, 16)
	before[0].Name = "pause a request of api-2 after-acquire"
	require.Empty(t, lost(losses, before, began), "its heartbeat had not begun")
}

func TestKindsThatSpareLeases(t *testing.T) {
	t.Parallel()
	var spare []string
	for _, kind := range nemesis.Kinds(nemesis.Target{}) {
		if (injury{Kind: kind}).isOneOf(sparesLeases) {
			spare = append(spare, kind)
		}
	}
	require.Subset(t, spare, []string{"request pause", "provider pause", "postgres crash", "redis script flush"})
	require.NotContains(t, spare, "replica pause")
	require.NotContains(t, spare, "redis flush")
	require.NotContains(t, spare, "inner answers cut in half")
}

func TestMoneyMovesWithoutRedis(t *testing.T) {
	t.Parallel()
	killed := []injury{{Kind: "redis kill", Injected: 9, Held: 10, Healing: 20, Healed: 25}}
	paid := journal.Attempt{Operation: "payment", Status: 201, Invoke: 11, Return: 19}
	found := unrefused([]journal.Attempt{paid}, killed)
	require.Len(t, found, 1)
	require.Equal(t, verify.FailsClosed, found[0].Rule)

	early, late, order, refused := paid, paid, paid, paid
	early.Invoke, late.Return, order.Operation, refused.Status = 9, 22, "order", 503
	require.Empty(t, unrefused([]journal.Attempt{early, late, order, refused}, killed))
	killed[0].NotFired = true
	require.Empty(t, unrefused([]journal.Attempt{paid}, killed))
}

func TestNginxSendsTwiceForAReason(t *testing.T) {
	t.Parallel()
	a := journal.Attempt{Via: "nginx", Invoke: 10 * time.Second, Return: 11 * time.Second}
	hurt := func(kind string, from, to time.Duration) []injury {
		return []injury{{Kind: kind, Injected: from * time.Second, Healed: to * time.Second}}
	}
	require.True(t, sentTwice(a, hurt("replica kill", 9, 12)))
	require.True(t, sentTwice(a, hurt("nginx cut off from one replica", 4, 6)), "its connections are broken still")
	require.False(t, sentTwice(a, hurt("replica kill", 3, 4)))
	require.False(t, sentTwice(a, hurt("redis pause", 9, 12)))
	a.Via = "api-1"
	require.False(t, sentTwice(a, hurt("replica kill", 9, 12)))
}

func TestWhoHangsUpIsServed(t *testing.T) {
	t.Parallel()
	began := time.Now()
	hungUp := []journal.Attempt{{Key: "k", Purpose: journal.HangUp, Error: "context deadline exceeded", Invoke: 10 * time.Second, Return: 10 * time.Second}}
	released := []witness.Release{{At: began.Add(11 * time.Second), Record: "idempotency:a:k"}}
	found := unserved(hungUp, released, nil, began)
	require.Len(t, found, 1)
	require.Equal(t, verify.Served, found[0].Rule)
	require.Len(t, unserved(hungUp, released, []injury{{Kind: "provider pause", Injected: 1, Healed: time.Hour}}, began), 1)

	require.Empty(t, unserved(hungUp, nil, nil, began), "it was completed")
	require.Empty(t, unserved(hungUp, released, []injury{{Kind: "postgres crash", Injected: 1, Healed: time.Hour}}, began), "it could not be completed")
	hungUp[0].Purpose = journal.Alone
	require.Empty(t, unserved(hungUp, released, nil, began), "it is retried")
}

func TestTrespassesAreTold(t *testing.T) {
	t.Parallel()
	began := time.Now()
	found := unheld([]witness.Trespass{{At: began.Add(time.Second), Record: "idempotency:a:b", Detail: "x writes what is y's"}}, began)
	require.Len(t, found, 1)
	require.Equal(t, verify.OneHolder, found[0].Rule)
	require.Contains(t, found[0].Detail, "idempotency:a:b at 1.0s: x writes what is y's")
}
