package verify_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
)

// run is a healthy campaign in small: an order paid by card and partly refunded, one paid from the wallet, one refused.
type run struct {
	attempts []journal.Attempt
	books    verify.Books
}

const account = "sk_test_demo"

var began = time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)

func attempt(key string, at int, status int, body string) journal.Attempt {
	return journal.Attempt{Account: account, Key: key, Operation: "order", Fingerprint: "A", Number: 1, Invoke: time.Duration(at) * time.Second,
		Return: time.Duration(at)*time.Second + 1, Status: status, Body: body}
}

func (r *run) see(key, resource string) {
	a := attempt(key, len(r.attempts), 201, "body of "+resource)
	a.Resource = resource
	r.attempts = append(r.attempts, a)
	r.books.Keys = append(r.books.Keys, verify.KeyRow{KeyID: verify.KeyID{Account: account, Key: key}, Status: "completed",
		ResponseStatus: 201, Body: a.Body, Resource: resource})
}

// announce writes an event, and gives it its effect.
func (r *run) announce(kind, about, subject string) {
	r.books.Events = append(r.books.Events, verify.Event{ID: kind + " " + about, Subject: subject, Type: kind, Published: true, About: about})
	switch kind {
	case "order.placed":
		r.books.Confirmed[subject] = 1
	case "payment.succeeded":
		r.books.Noticed[subject] = 1
	}
}

func healthy() *run {
	r := &run{}
	for _, id := range []string{"c1", "t1", "o1", "p1", "r1", "o2", "p2"} {
		r.see("key-"+id, id)
	}
	refused := attempt("key-no", 20, 402, "declined")
	refused.Code = "payment_declined"
	lost := attempt("key-o1", 0, 0, "")
	lost.Error = "connection reset"
	r.attempts = append(r.attempts, refused, lost)
	r.books.Keys = append(r.books.Keys, verify.KeyRow{KeyID: verify.KeyID{Account: account, Key: "key-no"}, Status: "failed", ResponseStatus: 402, Body: "declined"})
	r.books.TopUps = []verify.TopUp{{ID: "t1", Customer: "c1", Amount: 1000}}
	r.books.Wallets = map[string]int64{"c1": 800}
	r.books.Orders = []verify.Order{
		{ID: "o1", Account: account, Customer: "c1", Status: "partially_refunded", Total: 200, Items: map[string]int64{"tee": 2}},
		{ID: "o2", Account: account, Customer: "c1", Status: "paid", Total: 200, Items: map[string]int64{"tee": 2}},
	}
	r.books.Payments = []verify.Payment{
		{ID: "p1", Order: "o1", Customer: "c1", Method: "card", Status: "succeeded", Amount: 200, Refunded: 50},
		{ID: "p2", Order: "o2", Customer: "c1", Method: "wallet", Status: "succeeded", Amount: 200},
	}
	r.books.Refunds = []verify.Refund{{ID: "r1", Payment: "p1", Order: "o1", Status: "succeeded", Amount: 50}}
	r.books.Transactions = []verify.Transaction{{"x1", "t1", 0, 1000}, {"x2", "p1", 0, 200}, {"x3", "p2", 0, 200}, {"x4", "r1", 0, 50}}
	r.books.Products = []verify.Product{{Account: account, SKU: "tee", Opening: 10, Stock: 6}}
	r.books.Charges = []verify.Charge{{ID: "ch_1", Reference: "o1", Status: "succeeded", Amount: 200}, {ID: "ch_2", Reference: "o0", Status: "declined", Amount: 9}}
	r.books.PSPRefunds = []verify.Charge{{ID: "re_1", Reference: "r1", Status: "succeeded", Amount: 50}}
	for i, e := range []verify.Event{
		{ID: "e1", Subject: "o1", Type: "order.placed", About: "o1"}, {ID: "e2", Subject: "o1", Type: "payment.succeeded", About: "p1"},
		{ID: "e3", Subject: "o2", Type: "order.placed", About: "o2"}, {ID: "e4", Subject: "o2", Type: "payment.succeeded", About: "p2"},
		{ID: "e5", Subject: "c1", Type: "customer.created", About: "c1"}, {ID: "e6", Subject: "c1", Type: "wallet.topped_up", About: "t1"},
		{ID: "e7", Subject: "o1", Type: "refund.succeeded", About: "r1"},
	} {
		e.Created, e.Published = began.Add(time.Duration(i+1)*time.Second), true
		r.books.Events = append(r.books.Events, e)
	}
	// Redis lost all when the second order had been placed; e1 and e3 were sent again late.
	r.books.Streams = []verify.Stream{{Since: began, IDs: []string{"e1", "e2", "e3", "e1"}},
		{Since: began.Add(3500 * time.Millisecond), IDs: []string{"e4", "e2", "e1", "e3", "e4"}}}
	r.books.Confirmed = map[string]int{"o1": 1, "o2": 1}
	r.books.Noticed = map[string]int{"o1": 1, "o2": 1}
	return r
}

func (r *run) verdict() []verify.Violation { return verify.All(r.attempts, r.books, time.Second) }

func TestHealthyRunHasNoViolation(t *testing.T) {
	t.Parallel()
	require.Empty(t, healthy().verdict())
}

func TestWaitsForSomebody(t *testing.T) {
	t.Parallel()
	told := attempt("key", 10, 409, "")
	told.Code = "idempotency_in_progress"
	once, twice := func(journal.Attempt) bool { return false }, func(journal.Attempt) bool { return true }
	before, after, other := attempt("key", 9, 0, ""), attempt("key", 11, 201, "x"), attempt("another key", 9, 0, "")

	found := verify.WaitsForSomebody([]journal.Attempt{told, after, other}, once)
	require.Len(t, found, 1)
	require.Equal(t, verify.WaitedFor, found[0].Rule)
	require.Equal(t, "key", found[0].Key)
	require.Empty(t, verify.WaitsForSomebody([]journal.Attempt{told, after, before}, once))
	require.Empty(t, verify.WaitsForSomebody([]journal.Attempt{told, after, other}, twice))
}

// Each anomaly breaks one rule, and must be reported by that one alone.
func TestPlantedAnomalies(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		rule  verify.Rule
		plant func(*run)
	}{
		"two bodies under one key": {verify.OneHistory, func(r *run) {
			// Both were seen, and the second is what is kept of another key's history: the rows can't tell, the order can.
			r.attempts = append(r.attempts, journal.Attempt{Account: account, Key: "key-o1", Fingerprint: "B", Invoke: 1, Return: 2, Status: 201, Body: "body of o1"})
		}},
		"the right request is called another one": {verify.OneHistory, func(r *run) {
			a := attempt("key-o1", 30, 422, "x")
			a.Code = "idempotency_key_reused"
			r.attempts = append(r.attempts, a)
		}},
		"acknowledged and not there": {verify.AnswersKept, func(r *run) {
			a := attempt("key-gone", 30, 409, "out")
			a.Code = "out_of_stock"
			r.attempts = append(r.attempts, a)
		}},
		"kept with other bytes": {verify.AnswersKept, func(r *run) { r.books.Keys[2].Body = "other" }},
		"order without a key": {verify.NoOrphans, func(r *run) {
			r.books.Orders = append(r.books.Orders, verify.Order{ID: "o9", Account: account, Status: "expired"})
			r.announce("order.placed", "o9", "o9")
			r.announce("order.expired", "o9", "o9")
		}},
		"cancelled by nobody": {verify.NoOrphans, func(r *run) {
			r.see("key-o3", "o3")
			r.books.Orders = append(r.books.Orders, verify.Order{ID: "o3", Account: account, Status: "cancelled"})
			r.announce("order.placed", "o3", "o3")
			r.announce("order.cancelled", "o3", "o3")
		}},
		"cancellation that was lost": {verify.NoOrphans, func(r *run) {
			r.see("key-o1-cancel", "o1")
			r.books.Keys[len(r.books.Keys)-1].Operation = "update_order"
		}},
		"cancelled twice": {verify.NoOrphans, func(r *run) {
			r.see("key-o3", "o3")
			for _, key := range []string{"key-cancel", "key-cancel-again"} {
				r.see(key, "o3")
				r.books.Keys[len(r.books.Keys)-1].Operation = "update_order"
			}
			r.books.Orders = append(r.books.Orders, verify.Order{ID: "o3", Account: account, Status: "cancelled"})
			r.announce("order.placed", "o3", "o3")
			r.announce("order.cancelled", "o3", "o3")
		}},
		"two keys for one order": {verify.NoOrphans, func(r *run) { r.see("key-o1-again", "o1") }},
		"second charge": {verify.OneCharge, func(r *run) {
			r.books.Charges = append(r.books.Charges, verify.Charge{ID: "ch_3", Reference: "o1", Status: "succeeded", Amount: 200})
		}},
		"payment without a charge":  {verify.OneCharge, func(r *run) { r.books.Charges = nil }},
		"charge of another amount":  {verify.OneCharge, func(r *run) { r.books.Charges[0].Amount = 199 }},
		"refund without the money":  {verify.OneRefund, func(r *run) { r.books.PSPRefunds = nil }},
		"money refunded twice":      {verify.OneRefund, func(r *run) { r.books.PSPRefunds = append(r.books.PSPRefunds, r.books.PSPRefunds[0]) }},
		"unbalanced transaction":    {verify.LedgerZero, func(r *run) { r.books.Transactions[0].Sum = 1 }},
		"movement without a ledger": {verify.LedgerZero, func(r *run) { r.books.Transactions = r.books.Transactions[1:] }},
		"wallet debited twice":      {verify.WalletsRight, func(r *run) { r.books.Wallets["c1"] -= 200 }},
		"stock reserved twice":      {verify.StockRight, func(r *run) { r.books.Products[0].Stock -= 2 }},
		"paid order is pending":     {verify.OrdersRight, func(r *run) { r.books.Orders[1].Status = "pending" }},
		"key in progress in Redis":  {verify.NothingOpen, func(r *run) { r.books.Pending = []string{"idempotency:a:b"} }},
		"payment processing": {verify.NothingOpen, func(r *run) {
			r.books.Payments = append(r.books.Payments, verify.Payment{ID: "p3", Order: "o3", Method: "card", Status: "processing"})
		}},
		"event not published":     {verify.EventsOnce, func(r *run) { r.books.Events[1].Published = false }},
		"events out of order":     {verify.EventsOnce, func(r *run) { r.books.Streams[0].IDs = []string{"e2", "e1"} }},
		"effect twice":            {verify.EventsOnce, func(r *run) { r.books.Confirmed["o1"] = 2 }},
		"effect lost":             {verify.EventsOnce, func(r *run) { delete(r.books.Confirmed, "o1") }},
		"effect without an event": {verify.EventsOnce, func(r *run) { r.books.Confirmed["o3"] = 1 }},
		"sent twice":              {verify.EventsOnce, func(r *run) { r.books.Noticed["o2"] = 2 }},
		"never sent":              {verify.EventsOnce, func(r *run) { delete(r.books.Noticed, "o2") }},
		"sent without an event":   {verify.EventsOnce, func(r *run) { r.books.Noticed["o3"] = 1 }},
		"key in progress in PostgreSQL": {verify.NothingOpen, func(r *run) {
			r.books.Keys = append(r.books.Keys, verify.KeyRow{KeyID: verify.KeyID{Account: account, Key: "key-open"}, Status: "in_progress"})
		}},
		"refund processing": {verify.NothingOpen, func(r *run) {
			r.books.Refunds = append(r.books.Refunds, verify.Refund{ID: "r9", Payment: "p1", Order: "o1", Status: "processing"})
		}},
		"stock below zero": {verify.StockRight, func(r *run) { r.books.Products[0].Opening, r.books.Products[0].Stock = 3, -1 }},
		"two payments of one order": {verify.OrdersRight, func(r *run) {
			r.see("key-p3", "p3")
			r.books.Payments = append(r.books.Payments, verify.Payment{ID: "p3", Order: "o2", Customer: "c1", Method: "wallet", Status: "succeeded", Amount: 200})
			r.announce("payment.succeeded", "p3", "another order, for the events' sake")
			r.books.Transactions = append(r.books.Transactions, verify.Transaction{ID: "x9", Subject: "p3", Volume: 200})
			r.books.Wallets["c1"] -= 200
		}},
		"key of an effect that is gone": {verify.NoOrphans, func(r *run) { r.see("key-o9", "o9") }},
		"notice acted upon again": {verify.NoticedOnce, func(r *run) {
			r.books.Notices = []verify.Notice{{ID: "evt_1", Verdict: "settled", Settled: true}, {ID: "evt_2", Verdict: "confirmed", Settled: true}}
		}},
		"change without an event": {verify.EachAnnounced, func(r *run) { r.books.Events = r.books.Events[:6] }},
		"event of nothing":        {verify.EachAnnounced, func(r *run) { r.announce("payment.declined", "p1", "o1") }},
		"event written twice":     {verify.EachAnnounced, func(r *run) { r.announce("refund.succeeded", "r1", "o1") }},
		"refused, and done all the same": {verify.RefusedNoting, func(r *run) {
			for i, a := range r.attempts {
				if a.Key == "key-o2" {
					r.attempts[i].Status, r.attempts[i].Code, r.attempts[i].Resource = 409, "out_of_stock", ""
				}
			}
		}},
		"never decided": {verify.Decided, func(r *run) {
			r.attempts = append(r.attempts, attempt("key-lost", 30, 503, ""))
		}},
	}
	broken := map[verify.Rule]bool{verify.Resources: true, verify.Recovery: true, verify.Orphans: true, verify.Proof: true,
		verify.OneHolder: true, verify.LeaseKept: true, verify.FailsClosed: true, verify.Served: true, verify.WaitedFor: true} // the campaign's own tests break these
	for name, test := range tests {
		broken[test.rule] = true
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := healthy()
			test.plant(r)
			found := r.verdict()
			require.NotEmpty(t, found)
			for _, v := range found {
				require.Equal(t, test.rule, v.Rule, "%v", found)
			}
		})
	}
	for _, rule := range verify.Rules {
		require.True(t, broken[rule], "no anomaly breaks: %s", rule)
	}
}

func TestConsumedWaitsForEveryEffect(t *testing.T) {
	t.Parallel()
	require.True(t, healthy().books.Consumed())
	for name, hurt := range map[string]func(*verify.Books){
		"published": func(b *verify.Books) { b.Events[3].Published = false },
		"confirmed": func(b *verify.Books) { delete(b.Confirmed, "o1") },
		"noticed":   func(b *verify.Books) { delete(b.Noticed, "o2") },
	} {
		b := healthy().books
		hurt(&b)
		require.False(t, b.Consumed(), name)
	}
}

func TestRepeatedCountsEventsNotAppearances(t *testing.T) {
	t.Parallel()
	b := verify.Books{Streams: []verify.Stream{{IDs: []string{"a", "b", "a", "a"}}, {IDs: []string{"b", "c", "c"}}}}
	require.Equal(t, 2, b.Repeated())
}

func TestWatchSeesContradictionsAsTheyCome(t *testing.T) {
	t.Parallel()
	w, r := verify.NewWatch(), healthy()
	require.Zero(t, w.Look(r.attempts))
	require.Zero(t, w.Look(r.attempts), "the same again")
	other := attempt("key-o1", 30, 201, "another body")
	r.attempts = append(r.attempts, attempt("key-o1", 29, 201, "body of o1"), other, other)
	require.Equal(t, 1, w.Look(r.attempts))
	r.attempts = append(r.attempts, attempt("key-no", 31, 201, "declined"))
	require.Equal(t, 2, w.Look(r.attempts))
}

// Porcupine would need longer than the universe for this one: no verdict is no proof.
func TestAnUndecidedCheckIsAViolation(t *testing.T) {
	t.Parallel()
	r := healthy()
	for i := range 60 {
		a := attempt("key-o1", 0, 422, "x")
		a.Code, a.Fingerprint, a.Return = "idempotency_key_reused", "B", time.Duration(1000+i)*time.Second
		r.attempts = append(r.attempts, a)
	}
	other := attempt("key-o1", 1, 201, "another body")
	other.Return = 2000 * time.Second
	r.attempts = append(r.attempts, other)
	found := verify.All(r.attempts, r.books, 50*time.Millisecond)
	require.NotEmpty(t, found)
	require.Equal(t, verify.OneHistory, found[0].Rule)
	require.Contains(t, found[0].Detail, "Unknown")
}

// A violation comes with the key whose history tells how it came about.
func TestViolationsNameTheirKeys(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		plant func(*run)
		key   string
	}{
		"second charge":  {func(r *run) { r.books.Charges = append(r.books.Charges, r.books.Charges[0]) }, "key-p1"},
		"no charge":      {func(r *run) { r.books.Charges = nil }, "key-p1"},
		"no refund":      {func(r *run) { r.books.PSPRefunds = nil }, "key-r1"},
		"unbalanced":     {func(r *run) { r.books.Transactions[0].Sum = 1 }, "key-t1"},
		"no transaction": {func(r *run) { r.books.Transactions = r.books.Transactions[1:] }, "key-t1"},
		"order's state":  {func(r *run) { r.books.Orders[1].Status = "pending" }, "key-p2"},
		"order never paid": {func(r *run) {
			r.see("key-o5", "o5")
			r.books.Orders = append(r.books.Orders, verify.Order{ID: "o5", Account: account, Status: "paid"})
		}, "key-o5"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := healthy()
			test.plant(r)
			found := r.verdict()
			require.NotEmpty(t, found)
			require.Equal(t, test.key, found[0].Key)
			require.Equal(t, account, found[0].Account)
		})
	}
}
