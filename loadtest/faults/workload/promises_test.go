package workload

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

func TestRefuse_LeavesARefusedKeyAloneOrCorrectsIt(t *testing.T) {
	t.Parallel()
	left, corrected := 0, 0
	for n := range 20 {
		f, wire := newFakeShop(t)
		c := clientsOf(t, wire, 1)
		c.action(0, n).refuse(t.Context(), "sk_test_demo")
		attempts := slices.DeleteFunc(slices.Clone(wire.Journal.Attempts()), func(a journal.Attempt) bool { return a.Operation != "order" })
		last := attempts[len(attempts)-1]
		switch last.Outcome() {
		case journal.Rejected:
			left++
			require.Equal(t, journal.Refusal, last.Purpose)
		case journal.Succeeded:
			corrected++
		}
		require.Empty(t, c.open.list(true))
		puts := 0
		for s := range set(f.requests(), seen.logical) {
			if s.method == "PUT" {
				puts++
				require.True(t, strings.HasPrefix(s.path, "/v1/products/faults-later-"))
			}
		}
		require.Equal(t, 1, puts, "the product appears")
	}
	require.Equal(t, 20, left+corrected)
	require.Greater(t, left, corrected)
	require.Positive(t, corrected)
}

func TestRefuseDuring_SendsOlderCopiesToThePausedReplica(t *testing.T) {
	t.Parallel()
	f, wire := newFakeShop(t)
	clientsOf(t, wire, 1).RefuseDuring(t.Context(), api2, 8)
	first := map[string]string{}
	keys := map[string]bool{}
	for _, s := range f.requests() {
		if first[s.key] == "" {
			first[s.key] = s.door
		}
		keys[s.key] = s.method == http.MethodPost
	}
	count := map[string]int{}
	for key, door := range first {
		if keys[key] {
			count[door]++
		}
	}
	require.Equal(t, map[string]int{api2: 4, nginx: 4}, count)

	byStart := map[string][]string{}
	for _, s := range f.requests() {
		if s.start != "" {
			byStart[s.key+s.start] = append(byStart[s.key+s.start], s.door)
		}
	}
	require.Len(t, byStart, 2)
	for _, doors := range byStart {
		require.Equal(t, []string{api2, api1}, doors, "both copies have the proxy's time")
	}
}

func TestLookUp_IsJournalled(t *testing.T) {
	t.Parallel()
	_, wire := newFakeShop(t)
	wire.LookUp(t.Context(), payment, api1)
	wire.Endpoints[api2] = "http://127.0.0.1:1"
	wire.LookUp(t.Context(), payment, api2)
	all := wire.Journal.Attempts()
	require.Len(t, all, 2)
	require.Equal(t, &journal.LookUp{State: "completed", Status: 201}, all[0].LookUp)
	require.Equal(t, journal.LookedUp, all[0].Outcome())
	require.Equal(t, payment.Key, all[0].Key)
	require.NotEmpty(t, all[1].Error)
}

func TestSell_SendsOneOrderPerBuyerForTheProductOfTheSale(t *testing.T) {
	t.Parallel()
	f, wire := newFakeShop(t)
	c := clientsOf(t, wire, 1)
	sale, err := c.OpenSale(t.Context())
	require.NoError(t, err)
	require.Equal(t, 7, c.Sell(t.Context(), sale, 7))
	keys := map[string]bool{}
	for _, s := range f.requests()[1:] {
		keys[s.key] = true
		require.Contains(t, s.body, `"sku":"faults-shelf--1-1"`)
	}
	require.Len(t, keys, 7)
}

func TestCrowd_OrdersUntilTheEnd(t *testing.T) {
	t.Parallel()
	_, wire := newFakeShop(t)
	c := clientsOf(t, wire, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	sent := c.Crowd(ctx, 5)
	require.Greater(t, sent, 5)
	require.Len(t, wire.Journal.Attempts(), sent)
	attempts := map[string]int{}
	for _, a := range wire.Journal.Attempts() {
		attempts[a.Key]++
		require.LessOrEqual(t, attempts[a.Key], 2, "each order has a key of its own, and is sent a second time when it is answered")
	}
	require.Empty(t, c.open.list(true), "all are answered")
}

func TestPay_OrdersAndPaysUntilTheEnd(t *testing.T) {
	t.Parallel()
	_, wire := newFakeShop(t)
	c := clientsOf(t, wire, 1)
	ctx, cancel := context.WithTimeout(t.Context(), payersCome)
	defer cancel()
	sent := c.Pay(ctx, 5)
	require.Greater(t, sent, 5)
	require.Len(t, wire.Journal.Attempts(), sent)
	operations := map[string]int{}
	for _, a := range wire.Journal.Attempts() {
		require.Equal(t, []any{api1, journal.SlowPayer}, []any{a.Via, a.Purpose})
		operations[a.Operation]++
	}
	require.Equal(t, operations["order"], operations["payment"])
	require.Empty(t, c.open.list(true), "all are answered")
}

func TestLeaveUnfinished_HoldsItsConnectionsUntilTheEnd(t *testing.T) {
	t.Parallel()
	fake, wire := newFakeShop(t)
	c := clientsOf(t, wire, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	require.Equal(t, 10, c.LeaveUnfinished(ctx, 10))
	require.Error(t, ctx.Err(), "it lasted until then")
	require.Empty(t, wire.Journal.Attempts(), "they are no attempts")
	fake.mu.Lock()
	defer fake.mu.Unlock()
	for _, s := range fake.seen {
		require.Equal(t, "{", s.body)
	}
}

func TestFlood_IsOfOneAccountPastNginx(t *testing.T) {
	t.Parallel()
	_, wire := newFakeShop(t)
	c := clientsOf(t, wire, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	sent := c.Flood(ctx, 3)
	require.Len(t, wire.Journal.Attempts(), sent)
	doors := map[string]bool{}
	for _, a := range wire.Journal.Attempts() {
		require.Equal(t, []any{c.shop.Accounts[1], journal.Greedy, "order"}, []any{a.Account, a.Purpose, a.Operation})
		doors[a.Via] = true
	}
	require.Equal(t, map[string]bool{api1: true, api2: true}, doors)
}

func TestKnock_CountsWhatWasRefused(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	keys := map[string]bool{}
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if keys[r.Header.Get("Authorization")] = true; len(keys) <= 3 {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(door.Close)
	wire := NewWire(map[string]string{nginx: door.URL, api1: door.URL, api2: door.URL}, journal.NewWriter(io.Discard))
	t.Cleanup(wire.Close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	require.Equal(t, 3, clientsOf(t, wire, 1).Knock(ctx, 3))
	require.Error(t, ctx.Err(), "it lasted until then")
	require.Empty(t, wire.Journal.Attempts(), "they are no attempts")
	mu.Lock()
	defer mu.Unlock()
	require.Greater(t, len(keys), 3, "each has a key of its own")
}

func TestStorm_RepeatsUntilTheAnswerIsFinal(t *testing.T) {
	t.Parallel()
	fake, wire := newFakeShop(t)
	fake.trouble = func(attempt int, w http.ResponseWriter) bool {
		if attempt <= 3 {
			problem(w, http.StatusServiceUnavailable, "overloaded")
		}
		return attempt <= 3
	}
	c := clientsOf(t, wire, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	sent := c.Storm(ctx, 1)
	all := wire.Journal.Attempts()
	require.Len(t, all, sent)
	for i, a := range all[:4] {
		require.Equal(t, all[0].Key, a.Key)
		require.Equal(t, i+1, a.Number)
	}
	require.Equal(t, journal.TurnedAway, all[2].Outcome())
	require.Equal(t, journal.Succeeded, all[3].Outcome())
	require.NotEqual(t, all[3].Key, all[4].Key)
}

func TestLeaveChanges_ChangesWithoutAKeyWhatOthersChangeAgain(t *testing.T) {
	t.Parallel()
	f, wire := newFakeShop(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*hurried) // nobody looks: that would be much later
	defer cancel()
	clientsOf(t, wire, 1).LeaveChanges(ctx, api2, 3)
	doors := map[string]int{}
	for _, s := range f.requests() {
		doors[fmt.Sprint(s.door, " ", s.method, " with a key: ", s.key != "")]++
	}
	require.Equal(t, map[string]int{"api-2 PUT with a key: false": 3, "api-1 PUT with a key: true": 3}, doors)
}

func TestRestock_ChangesEverythingTwiceHalfOfItWithoutAKey(t *testing.T) {
	t.Parallel()
	f, wire := newFakeShop(t)
	c := clientsOf(t, wire, 1)
	c.Restock(t.Context(), api2, 8)()
	doors := map[string]int{}
	for _, s := range f.requests() {
		if s.method != http.MethodPost {
			doors[fmt.Sprint(s.door, " ", s.method, " with a key: ", s.key != "")]++
		}
	}
	require.Equal(t, map[string]int{
		"nginx PATCH with a key: false": 2, "nginx PUT with a key: false": 2, "nginx PUT with a key: true": 4,
		"api-1 PATCH with a key: true": 2, "api-1 PUT with a key: true": 6,
	}, doors)
	require.Empty(t, c.open.list(true))
}
