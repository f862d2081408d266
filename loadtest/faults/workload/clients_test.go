package workload

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

func TestClients_RepeatTheRequestsOfASeed(t *testing.T) {
	t.Parallel()
	const clients, actions = 8, 25
	shop := func(seed uint64, trouble func(int, http.ResponseWriter) bool) (map[seen]bool, *Wire) {
		f, wire := newFakeShop(t)
		f.trouble = trouble
		act(t, clientsOf(t, wire, seed), clients, actions)
		hungUp := map[string]bool{} // whether it arrived is a matter of luck
		for _, a := range wire.Journal.Attempts() {
			hungUp[a.Key] = hungUp[a.Key] || a.Purpose == journal.HangUp
		}
		all := slices.DeleteFunc(f.requests(), func(s seen) bool { return hungUp[s.key] })
		return set(all, seen.logical), wire
	}
	quiet, _ := shop(1, nil)
	require.Greater(t, len(quiet), clients*actions)
	// Everybody's second attempt gets through: the same was asked for, however it went.
	hurt, wire := shop(1, func(attempt int, w http.ResponseWriter) bool {
		if attempt == 1 {
			w.WriteHeader(http.StatusBadGateway)
		}
		return attempt == 1
	})
	requireSameRequests(t, quiet, hurt)
	require.Greater(t, len(wire.Journal.Attempts()), 2*len(hurt)-len(hurt)/5)
	other, _ := shop(2, nil)
	require.NotEqual(t, quiet, other)
}

// TestAct_MixesEverything has clients do a lot, and looks for everything that a campaign must
// contain.
func TestAct_MixesEverything(t *testing.T) {
	t.Parallel()
	f, wire := newFakeShop(t)
	f.stock = 20
	c := clientsOf(t, wire, 1)
	act(t, c, 8, 250)

	operations, purposes := map[string]int{}, map[journal.Purpose]map[string]int{}
	for _, a := range wire.Journal.Attempts() {
		operations[a.Operation]++
		if purposes[a.Purpose] == nil {
			purposes[a.Purpose] = map[string]int{}
		}
		purposes[a.Purpose][a.Account+a.Key]++
	}
	for _, operation := range []string{"order", "payment", "refund", "top-up", "cancel", "product", "restock", "look", journal.Rename} {
		require.Greater(t, operations[operation], 50, operation)
	}
	for _, purpose := range []journal.Purpose{journal.Alone, journal.Burst, journal.Storm, journal.Reuse, journal.OtherAccount, journal.Race,
		journal.WalkAway, journal.HangUp, journal.Again, journal.Refusal, journal.Patient, journal.Trade} {
		require.Greater(t, len(purposes[purpose]), 20, purpose)
	}
	finished := 0
	for purpose, keys := range purposes {
		if purpose != journal.Again && purpose != journal.Refusal && purpose != journal.Patient && purpose != journal.WalkAway && purpose != journal.HangUp && purpose != journal.Reuse {
			finished += len(keys)
		}
	}
	require.InDelta(t, 0.10, float64(len(purposes[journal.Again]))/float64(finished), 0.02, "a tenth of the finished keys is sent again")
	for key, places := range purposes[journal.Burst] {
		require.GreaterOrEqual(t, places, 2, key)
		require.LessOrEqual(t, places, maxBurst, key)
	}
	wallets, cards, waiting := 0, 0, 0
	for s := range set(f.requests(), func(s seen) seen { return s }) {
		switch {
		case s.prefer == "wait=2":
			waiting++
		case s.body == `{"method":{"type":"wallet"}}`:
			wallets++
		case s.method == http.MethodPost && len(s.body) > 10 && s.body[:18] == `{"method":{"token"`:
			cards++
		}
	}
	require.Greater(t, wallets, 50)
	require.Greater(t, cards, 50)
	require.Greater(t, waiting, 20)
	require.Zero(t, f.stock, "more is wanted than there is")
	for _, r := range c.open.list(true) {
		require.Equal(t, journal.HangUp, r.Purpose, "what is decided is forgotten")
	}
	require.Empty(t, c.open.list(false))
}

func TestHangUp_DoesNotWait(t *testing.T) {
	t.Parallel()
	f, wire := newFakeShop(t)
	served := make(chan struct{})
	f.trouble = func(int, http.ResponseWriter) bool {
		<-served
		time.Sleep(2 * latest)
		return true
	}
	c := clientsOf(t, wire, 1)
	c.action(0, 0).hangUp(t.Context(), "sk_test_demo")
	require.Len(t, wire.Journal.Attempts(), 1)
	is := wire.Journal.Attempts()[0]
	require.Equal(t, journal.HangUp, is.Purpose)
	require.Equal(t, journal.Unknown, is.Outcome())
	require.NotEqual(t, nginx, is.Via)
	require.Empty(t, c.open.list(false), "no client sends it again")
	require.Len(t, c.open.list(true), 1, "but in the end, to know")
	close(served)
	c.Finish(t.Context(), time.Minute, true)
	require.Len(t, wire.Journal.Attempts(), 2, "with everybody's patience")
}

func TestGiveBack_UsesAKeyForEachRefund(t *testing.T) {
	t.Parallel()
	most := 0
	for n := range 20 {
		f, wire := newFakeShop(t)
		clientsOf(t, wire, 1).action(0, n).giveBack(t.Context(), "sk_test_demo", "payment")
		keys := set(f.requests(), func(s seen) seen { return seen{key: s.key} })
		most = max(most, len(keys))
	}
	require.Equal(t, 2, most)
}

func TestBurst_ReachesBothReplicasWithOneRequest(t *testing.T) {
	t.Parallel()
	for n := range 40 {
		f, wire := newFakeShop(t)
		a := clientsOf(t, wire, 1).action(3, n)
		is := a.burst(t.Context(), a.order("sk_test_demo", a.ampleItems()...))
		require.NotEmpty(t, is.Resource)
		all := f.requests()
		times := map[string]int{}
		for _, s := range all {
			times[s.door]++
			require.Equal(t, all[0].logical(), s.logical())
		}
		require.Positive(t, times[api1], "%v", times)
		require.Positive(t, times[api2], "%v", times)
	}
}

func TestReuse_SendsAnotherRequest(t *testing.T) {
	t.Parallel()
	refused := 0
	for n := range 20 {
		f, wire := newFakeShop(t)
		c := clientsOf(t, wire, 1)
		c.action(0, n).reuse(t.Context(), "sk_test_demo")
		all := f.requests()
		require.Len(t, all, 2)
		require.Equal(t, all[0].key, all[1].key)
		require.NotEqual(t, all[0].body, all[1].body)
		require.Empty(t, c.open.list(true))
		for _, is := range wire.Journal.Attempts() {
			if is.Purpose == journal.Refusal {
				refused++
			}
		}
	}
	require.Positive(t, refused, "some keys are left to the other request")
}

func TestShareKey_UsesTwoAccounts(t *testing.T) {
	t.Parallel()
	f, wire := newFakeShop(t)
	clientsOf(t, wire, 1).action(0, 0).shareKey(t.Context(), "")
	all := f.requests()
	require.Len(t, all, 2)
	require.Equal(t, all[0].key, all[1].key)
	require.NotEqual(t, all[0].account, all[1].account)
}

func TestRepeat_SendsWhatIsLeftInTheEnd(t *testing.T) {
	t.Parallel()
	_, wire := newFakeShop(t)
	c := clientsOf(t, wire, 1)
	for n := range 100 {
		a := c.action(0, n)
		a.repeat(t.Context(), a.order("sk_test_demo"))
	}
	require.Empty(t, wire.Journal.Attempts())
	c.end()
	c.later.Wait()
	all := wire.Journal.Attempts()
	require.InDelta(t, 10, len(all), 9)
	for _, a := range all {
		require.Equal(t, journal.Again, a.Purpose)
	}
}

// TestClients_EndWithTheirLastAnswers has clients shop for a moment.
func TestClients_EndWithTheirLastAnswers(t *testing.T) {
	t.Parallel()
	_, wire := newFakeShop(t)
	c := clientsOf(t, wire, 1)
	c.n = 16
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	c.Run(ctx)
	for _, a := range wire.Journal.Attempts() {
		if a.Purpose != journal.HangUp && a.Purpose != journal.Refusal {
			require.Contains(t, []journal.Outcome{journal.Succeeded, journal.Reused, journal.LookedUp}, a.Outcome(), a.String())
		}
	}
	require.Greater(t, len(wire.Journal.Attempts()), c.n)
}

func TestClients_FinishWhatIsOpen(t *testing.T) {
	t.Parallel()
	f, wire := newFakeShop(t)
	down := true
	f.trouble = func(_ int, w http.ResponseWriter) bool {
		if down {
			w.Header().Set("Retry-After", "60")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return down
	}
	c := clientsOf(t, wire, 1)
	a := c.action(0, 0)
	asked, left := a.order("sk_test_demo", a.ampleItems()...), a.request("sk_test_demo", "payment", "o", map[string]any{})
	other := asked
	other.Body = []byte(`{"another":"order"}`)
	for _, r := range []Request{asked, other} {
		c.call(t.Context(), r)
	}
	left.Via, left.Leaves = api1, true
	c.call(t.Context(), left)
	require.Len(t, c.open.list(false), 2)
	require.Len(t, c.open.list(true), 3)

	down = false
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c.Finish(ctx, time.Minute, false)
	require.Empty(t, c.open.list(false))
	require.Equal(t, []Request{left}, c.open.list(true), "what its client walked away from is not sent again")
	c.Finish(ctx, time.Minute, true)
	require.Empty(t, c.open.list(true))
	require.NoError(t, ctx.Err())
	last := wire.Journal.Attempts()[len(wire.Journal.Attempts())-1]
	require.Equal(t, journal.Attempt{Key: left.Key, Purpose: journal.Finishing, Via: nginx}, journal.Attempt{Key: last.Key, Purpose: last.Purpose, Via: last.Via})
}

func TestOpen_KeepsTheOtherRequestOfAReusedKey(t *testing.T) {
	t.Parallel()
	var o open
	first := Request{Attempt: journal.Attempt{Account: "a", Key: "k"}, Body: []byte("1")}
	second := Request{Attempt: journal.Attempt{Account: "a", Key: "k"}, Body: []byte("2")}
	o.add(first)
	o.add(second)
	o.answered(second, journal.Reused)
	require.Equal(t, []Request{first}, o.list(false))
	o.answered(first, journal.Unknown)
	require.Equal(t, []Request{first}, o.list(false))
	o.add(second)
	o.answered(second, journal.Refused)
	require.Empty(t, o.list(true), "the key has its end")
}

func TestSteady_OrdersAndPaysEverySecondOrder(t *testing.T) {
	t.Parallel()
	_, wire := newFakeShop(t)
	c := clientsOf(t, wire, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	c.Steady(ctx, 100)
	count, keys := map[string]int{}, map[string]bool{}
	for _, a := range wire.Journal.Attempts() {
		count[a.Operation]++
		require.False(t, keys[a.Key], a.Key)
		keys[a.Key] = true
	}
	require.Greater(t, count["order"], 10)
	require.Equal(t, count["order"]/2, count["payment"])
}
