package verify_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
)

// run is a healthy campaign in small: an order paid by card and partly refunded, one paid from the
// wallet, one refused.
type run struct {
	attempts []journal.Attempt
	books    books.Books
}

const account = "sk_test_demo"

var began = time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)

func attempt(key string, at int, status int, body string) journal.Attempt {
	return journal.Attempt{Account: account, Key: key, Operation: "order", Fingerprint: "A", Number: 1, Invoke: time.Duration(at) * time.Second,
		Return: time.Duration(at)*time.Second + 1, Status: status, Body: body}
}

// refusedTwice is a refused attempt that ends then, and a later one that meets another attempt.
func refusedTwice(ends, again time.Duration) []journal.Attempt {
	refused := attempt("key-refused", 30, 422, "x")
	refused.Code, refused.Purpose, refused.Return = "unknown_product", journal.Refusal, ends
	late := attempt("key-refused", 0, 409, "y")
	late.Code, late.Purpose, late.Invoke, late.Return = "idempotency_in_progress", journal.Refusal, again, again+time.Second
	return []journal.Attempt{refused, late}
}

// TestDecided_OfTwoAtOnceEitherMayBeReadLast is of a campaign on a busy machine.
func TestDecided_OfTwoAtOnceEitherMayBeReadLast(t *testing.T) {
	t.Parallel()
	found := verify.All(refusedTwice(31*time.Second, 30*time.Second+1), books.Books{}, time.Second)
	require.False(t, slices.ContainsFunc(found, func(v books.Violation) bool { return v.Rule == verify.Decided }), "%v", found)
}

func lookUp(key string, at, status int, state string, told int) journal.Attempt {
	a := attempt(key, at, status, "")
	a.LookUp = &journal.LookUp{State: state, Status: told}
	return a
}

func (r *run) see(key, resource string) {
	a := attempt(key, len(r.attempts), 201, "body of "+resource)
	a.Resource = resource
	r.attempts = append(r.attempts, a)
	r.books.Keys = append(r.books.Keys, books.KeyRow{KeyID: books.KeyID{Account: account, Key: key}, Status: "completed",
		ResponseStatus: 201, Body: a.Body, Resource: resource})
}

// mail confirms an event, twice, which is allowed.
func (r *run) mail(e books.Event) {
	if e.Type == "order.placed" || e.Type == "payment.succeeded" {
		r.books.Mailable = append(r.books.Mailable, books.Confirmation{Event: e.ID})
		r.books.Mails[e.ID] = 2
	}
}

// announce writes an event, and gives it its effect.
func (r *run) announce(kind, about, subject string) {
	e := books.Event{ID: kind + " " + about, Subject: subject, Type: kind, Published: true, About: about}
	r.books.Events = append(r.books.Events, e)
	r.mail(e)
	switch kind {
	case "order.placed":
		r.books.Confirmations[subject] = 1
	case "payment.succeeded":
		r.books.WarehouseNotices[subject] = 1
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
	r.books.Keys = append(r.books.Keys, books.KeyRow{KeyID: books.KeyID{Account: account, Key: "key-no"}, Status: "failed", ResponseStatus: 402, Body: "declined"})
	r.books.TopUps = []books.TopUp{{ID: "t1", Customer: "c1", Amount: 1000}}
	r.books.Wallets = map[string]int64{"c1": 800}
	r.books.Orders = []books.Order{
		{ID: "o1", Account: account, Customer: "c1", Status: "partially_refunded", Total: 200, Items: map[string]int64{"tee": 2}},
		{ID: "o2", Account: account, Customer: "c1", Status: "paid", Total: 200, Items: map[string]int64{"tee": 2}},
	}
	r.books.Payments = []books.Payment{
		{ID: "p1", Order: "o1", Customer: "c1", Method: "card", Status: "succeeded", Amount: 200, Refunded: 50},
		{ID: "p2", Order: "o2", Customer: "c1", Method: "wallet", Status: "succeeded", Amount: 200},
	}
	r.books.Refunds = []books.Refund{{ID: "r1", Payment: "p1", Order: "o1", Status: "succeeded", Amount: 50}}
	r.books.Transactions = []books.Transaction{{ID: "x1", Subject: "t1", Sum: 0, Volume: 1000}, {ID: "x2", Subject: "p1", Sum: 0, Volume: 200}, {ID: "x3", Subject: "p2", Sum: 0, Volume: 200}, {ID: "x4", Subject: "r1", Sum: 0, Volume: 50}}
	r.books.Products = []books.Product{{Account: account, SKU: "tee", Opening: 10, Stock: 6}}
	r.books.Charges = []books.Charge{{ID: "ch_1", Reference: "o1", Status: "succeeded", Amount: 200}, {ID: "ch_2", Reference: "o0", Status: "declined", Amount: 9}}
	r.books.ProviderRefunds = []books.Charge{{ID: "re_1", Reference: "r1", Status: "succeeded", Amount: 50}}
	for i, e := range []books.Event{
		{ID: "e1", Subject: "o1", Type: "order.placed", About: "o1"}, {ID: "e2", Subject: "o1", Type: "payment.succeeded", About: "p1"},
		{ID: "e3", Subject: "o2", Type: "order.placed", About: "o2"}, {ID: "e4", Subject: "o2", Type: "payment.succeeded", About: "p2"},
		{ID: "e5", Subject: "c1", Type: "customer.created", About: "c1"}, {ID: "e6", Subject: "c1", Type: "wallet.topped_up", About: "t1"},
		{ID: "e7", Subject: "o1", Type: "refund.succeeded", About: "r1"},
	} {
		e.Created, e.Published = began.Add(time.Duration(i+1)*time.Second), true
		r.books.Events = append(r.books.Events, e)
	}
	// Redis lost all when the second order had been placed; e1 and e3 were sent again late.
	r.books.Streams = []books.Stream{{Since: began, IDs: []string{"e1", "e2", "e3", "e1"}},
		{Since: began.Add(3500 * time.Millisecond), IDs: []string{"e4", "e2", "e1", "e3", "e4"}}}
	r.books.Confirmations = map[string]int{"o1": 1, "o2": 1}
	r.books.WarehouseNotices = map[string]int{"o1": 1, "o2": 1}
	r.books.Mails = map[string]int{}
	for _, e := range r.books.Events {
		r.mail(e)
	}
	return r
}

// What contradicts nothing must not be reported.
func TestAll_AllowsWhatAgrees(t *testing.T) {
	t.Parallel()
	r := healthy()
	raced := attempt("key-o2", 0, 422, "x")
	raced.Code, raced.Invoke = "unknown_product", r.attempts[5].Invoke+time.Millisecond
	expired := attempt("key-t1", 50, 409, "x")
	expired.Code = "idempotency_key_expired"
	k := &r.books.Keys[1]
	k.Status, k.Body, k.Resource, k.Parent = books.Expired, "", "", "c1"
	r.attempts = append(r.attempts, raced, expired, lookUp("key-o2", 40, 200, "completed", 201),
		lookUp("key-no", 10, 404, "", 0), lookUp("key-no", 19, 200, "in_progress", 0), lookUp("key-o2", 41, 503, "", 0),
		lookUp("key-t1", 51, 200, "expired", 201))
	require.Empty(t, r.verdict())
}

func TestStaleRecords_FindsAnswersThatOutliveTheirRow(t *testing.T) {
	t.Parallel()
	good := books.Record{Name: "r", Expires: time.Now().Add(time.Second), HasRow: true, RowExpires: time.Now()}
	long, none := good, good
	long.RowExpires, none.HasRow = time.Now().Add(-time.Minute), false
	require.Empty(t, verify.StaleRecords([]books.Record{good}))
	for _, r := range []books.Record{long, none} {
		found := verify.StaleRecords([]books.Record{r})
		require.Len(t, found, 1)
		require.Equal(t, verify.NoStaleRecord, found[0].Rule)
	}
}

func (r *run) verdict() []books.Violation { return verify.All(r.attempts, r.books, time.Second) }

func TestAll_FindsNothingInAHealthyRun(t *testing.T) {
	t.Parallel()
	require.Empty(t, healthy().verdict())
}

func TestInProgressForAReason_WantsAnotherAttempt(t *testing.T) {
	t.Parallel()
	told := attempt("key", 10, 409, "")
	told.Code = "idempotency_in_progress"
	once, twice := func(journal.Attempt) bool { return false }, func(journal.Attempt) bool { return true }
	before, after, other := attempt("key", 9, 0, ""), attempt("key", 11, 201, "x"), attempt("another key", 9, 0, "")

	found := verify.InProgressForAReason([]journal.Attempt{told, after, other}, once)
	require.Len(t, found, 1)
	require.Equal(t, verify.WaitedFor, found[0].Rule)
	require.Equal(t, "key", found[0].Key)
	require.Empty(t, verify.InProgressForAReason([]journal.Attempt{told, after, before}, once))
	require.Empty(t, verify.InProgressForAReason([]journal.Attempt{told, after, other}, twice))
}

// Each anomaly breaks one rule, and must be reported by that one alone.
func TestAll_FindsEachPlantedAnomaly(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		rule  books.Rule
		plant func(*run)
	}{
		"two bodies under one key": {verify.OneHistory, func(r *run) {
			// Both were seen, and the second is what is kept of another key's history: the rows
			// can't tell.
			r.attempts = append(r.attempts, journal.Attempt{Account: account, Key: "key-o1", Fingerprint: "B", Invoke: 1, Return: 2, Status: 201, Body: "body of o1"})
		}},
		"the right request is called another one": {verify.OneHistory, func(r *run) {
			a := attempt("key-o1", 30, 422, "x")
			a.Code = "idempotency_key_reused"
			r.attempts = append(r.attempts, a)
		}},
		"called another request's, and executed later": {verify.OneHistory, func(r *run) {
			lost, reused, executed := attempt("key-late", 29, 0, ""), attempt("key-late", 30, 422, "x"), attempt("key-late", 31, 402, "declined")
			lost.Error, reused.Code, executed.Code = "connection reset", "idempotency_key_reused", "payment_declined"
			reused.Fingerprint, executed.Fingerprint = "B", "B"
			r.attempts = append(r.attempts, lost, reused, executed)
			r.books.Keys = append(r.books.Keys, books.KeyRow{KeyID: books.KeyID{Account: account, Key: "key-late"}, Status: "failed",
				ResponseStatus: 402, Body: "declined"})
		}},
		"called another request's, which was refused": {verify.ReusedForAReason, func(r *run) {
			for at, code := range map[int]string{30: "unknown_product", 31: "idempotency_key_reused", 32: "unknown_product"} {
				a := attempt("key-free", at, 422, "x")
				a.Code, a.Purpose = code, journal.Refusal
				if code == "idempotency_key_reused" {
					a.Fingerprint = "B"
				}
				r.attempts = append(r.attempts, a)
			}
		}},
		"acknowledged and not there": {verify.AnswersKept, func(r *run) {
			a := attempt("key-gone", 30, 409, "out")
			a.Code = "out_of_stock"
			r.attempts = append(r.attempts, a)
		}},
		"kept with other bytes": {verify.AnswersKept, func(r *run) { r.books.Keys[2].Body = "other" }},
		"order without a key": {books.OneKeyPerEffect, func(r *run) {
			r.books.Orders = append(r.books.Orders, books.Order{ID: "o9", Account: account, Status: "expired"})
			r.announce("order.placed", "o9", "o9")
			r.announce("order.expired", "o9", "o9")
		}},
		"cancelled without a request": {books.OneKeyPerEffect, func(r *run) {
			r.see("key-o3", "o3")
			r.books.Orders = append(r.books.Orders, books.Order{ID: "o3", Account: account, Status: "cancelled"})
			r.announce("order.placed", "o3", "o3")
			r.announce("order.cancelled", "o3", "o3")
		}},
		"cancellation that was lost": {books.OneKeyPerEffect, func(r *run) {
			r.see("key-o1-cancel", "o1")
			r.books.Keys[len(r.books.Keys)-1].Operation = "update_order"
		}},
		"cancelled twice": {books.OneKeyPerEffect, func(r *run) {
			r.see("key-o3", "o3")
			for _, key := range []string{"key-cancel", "key-cancel-again"} {
				r.see(key, "o3")
				r.books.Keys[len(r.books.Keys)-1].Operation = "update_order"
			}
			r.books.Orders = append(r.books.Orders, books.Order{ID: "o3", Account: account, Status: "cancelled"})
			r.announce("order.placed", "o3", "o3")
			r.announce("order.cancelled", "o3", "o3")
		}},
		"two keys for one order": {books.OneKeyPerEffect, func(r *run) { r.see("key-o1-again", "o1") }},
		"second charge": {books.OneCharge, func(r *run) {
			r.books.Charges = append(r.books.Charges, books.Charge{ID: "ch_3", Reference: "o1", Status: "succeeded", Amount: 200})
		}},
		"charge in two halves": {books.OneCharge, func(r *run) {
			r.books.Charges[0].Amount = 100
			r.books.Charges = append(r.books.Charges, r.books.Charges[0])
		}},
		"payment without a charge": {books.OneCharge, func(r *run) { r.books.Charges = nil }},
		"charge of another amount": {books.OneCharge, func(r *run) { r.books.Charges[0].Amount = 199 }},
		"refund without the money": {books.OneRefund, func(r *run) { r.books.ProviderRefunds = nil }},
		"money refunded twice":     {books.OneRefund, func(r *run) { r.books.ProviderRefunds = append(r.books.ProviderRefunds, r.books.ProviderRefunds[0]) }},
		"cards tested": {books.DeclinesLimited, func(r *run) {
			for i := range books.MaxDeclines + 1 {
				id := fmt.Sprint("declined-", i)
				r.announce("payment.declined", id, "o1")
				r.books.Payments = append(r.books.Payments, books.Payment{ID: id, Order: "o1", Method: "card", Status: "declined"})
			}
		}},
		"unbalanced transaction":    {books.LedgerBalances, func(r *run) { r.books.Transactions[0].Sum = 1 }},
		"movement without a ledger": {books.LedgerBalances, func(r *run) { r.books.Transactions = r.books.Transactions[1:] }},
		"wallet debited twice":      {books.WalletsMatch, func(r *run) { r.books.Wallets["c1"] -= 200 }},
		"stock reserved twice":      {books.StockMatches, func(r *run) { r.books.Products[0].Stock -= 2 }},
		"paid order is pending":     {books.OrdersMatch, func(r *run) { r.books.Orders[1].Status = "pending" }},
		"key in progress in Redis":  {books.NothingOpen, func(r *run) { r.books.Pending = []string{"idempotency:a:b"} }},
		"payment processing": {books.NothingOpen, func(r *run) {
			r.books.Payments = append(r.books.Payments, books.Payment{ID: "p3", Order: "o3", Method: "card", Status: "processing"})
		}},
		"event not published": {books.EventsOnce, func(r *run) { r.books.Events[1].Published = false }},
		"event passed over": {books.EventsOnce, func(r *run) {
			r.books.Streams = []books.Stream{{IDs: []string{"e1", "e2", "e3", "e4", "e5", "e6"}}}
		}},
		"two effects under an expired key": {books.OneKeyPerEffect, func(r *run) {
			r.books.Keys[1].Status, r.books.Keys[1].Resource, r.books.Keys[1].Parent = books.Expired, "", "c1"
			r.books.TopUps = append(r.books.TopUps, books.TopUp{ID: "t2", Customer: "c1", Amount: 10})
			r.books.Transactions = append(r.books.Transactions, books.Transaction{ID: "x9", Subject: "t2", Volume: 10})
			r.books.Wallets["c1"] += 10
			r.announce("wallet.topped_up", "t2", "c1")
		}},
		"events out of order":     {books.EventsOnce, func(r *run) { r.books.Streams[0].IDs = []string{"e2", "e1"} }},
		"effect twice":            {books.EventsOnce, func(r *run) { r.books.Confirmations["o1"] = 2 }},
		"effect lost":             {books.EventsOnce, func(r *run) { delete(r.books.Confirmations, "o1") }},
		"effect without an event": {books.EventsOnce, func(r *run) { r.books.Confirmations["o3"] = 1 }},
		"sent twice":              {books.EventsOnce, func(r *run) { r.books.WarehouseNotices["o2"] = 2 }},
		"never sent":              {books.EventsOnce, func(r *run) { delete(r.books.WarehouseNotices, "o2") }},
		"not mailed":              {books.EachMailed, func(r *run) { delete(r.books.Mails, "e1") }},
		"mailed without an event": {books.EachMailed, func(r *run) { r.books.Mails["e9"] = 1 }},
		"confirmed twice":         {books.EachMailed, func(r *run) { r.books.Mailable = append(r.books.Mailable, r.books.Mailable[0]) }},
		"sent without an event":   {books.EventsOnce, func(r *run) { r.books.WarehouseNotices["o3"] = 1 }},
		"key in progress in PostgreSQL": {books.NothingOpen, func(r *run) {
			r.books.Keys = append(r.books.Keys, books.KeyRow{KeyID: books.KeyID{Account: account, Key: "key-open"}, Status: "in_progress"})
		}},
		"refund processing": {books.NothingOpen, func(r *run) {
			r.books.Refunds = append(r.books.Refunds, books.Refund{ID: "r9", Payment: "p1", Order: "o1", Status: "processing"})
		}},
		"stock below zero": {books.StockMatches, func(r *run) { r.books.Products[0].Opening, r.books.Products[0].Stock = 3, -1 }},
		"two payments of one order": {books.OrdersMatch, func(r *run) {
			r.see("key-p3", "p3")
			r.books.Payments = append(r.books.Payments, books.Payment{ID: "p3", Order: "o2", Customer: "c1", Method: "wallet", Status: "succeeded", Amount: 200})
			r.announce("payment.succeeded", "p3", "another order, for the events' sake")
			r.books.Transactions = append(r.books.Transactions, books.Transaction{ID: "x9", Subject: "p3", Volume: 200})
			r.books.Wallets["c1"] -= 200
		}},
		"key of an effect that is gone": {books.OneKeyPerEffect, func(r *run) { r.see("key-o9", "o9") }},
		"notice acted upon again": {books.EachProviderEventOnce, func(r *run) {
			r.books.ProviderEvents = []books.ProviderEvent{{ID: "evt_1", Verdict: "settled", Settled: true}, {ID: "evt_2", Verdict: "confirmed", Settled: true}}
		}},
		"change without an event": {books.OneEventEach, func(r *run) { r.books.Events = r.books.Events[:6] }},
		"event of nothing":        {books.OneEventEach, func(r *run) { r.announce("payment.declined", "p1", "o1") }},
		"event written twice":     {books.OneEventEach, func(r *run) { r.announce("refund.succeeded", "r1", "o1") }},
		"refused, and done all the same": {verify.RefusedNoEffect, func(r *run) {
			for i, a := range r.attempts {
				if a.Key == "key-o2" {
					r.attempts[i].Status, r.attempts[i].Code, r.attempts[i].Resource = 409, "out_of_stock", ""
				}
			}
		}},
		"an older copy of a refused request acted": {verify.RefusalsHold, func(r *run) {
			a := attempt("key-o2", 40, 422, "x")
			a.Code = "unknown_product"
			r.attempts = append(r.attempts, a)
		}},
		"a change without a key acted twice": {verify.ChangesActOnce, func(r *run) {
			c := attempt("", 30, 200, "x")
			c.Change = &journal.Change{Of: "c1", Kind: journal.Set, Amount: 1}
			r.attempts = append(r.attempts, c)
			r.books.Products = append(r.books.Products, books.Product{SKU: "c1", Stock: 1, Version: 2, Restocked: true})
		}},
		"answered, and nothing is known of the key": {verify.LookUpsAgree, func(r *run) {
			r.attempts = append(r.attempts, lookUp("key-o2", 40, 404, "", 0))
		}},
		"answered, and the look-up has another status": {verify.LookUpsAgree, func(r *run) {
			r.attempts = append(r.attempts, lookUp("key-o2", 40, 200, "completed", 200))
		}},
		"looked up, and answered in another way": {verify.LookUpsAgree, func(r *run) {
			r.attempts = append(r.attempts, lookUp("key-no", 19, 200, "completed", 201))
		}},
		"corrected after a refusal, and never decided": {verify.Decided, func(r *run) {
			refused := attempt("key-lost", 30, 422, "x")
			refused.Code, refused.Purpose = "unknown_product", journal.Refusal
			corrected := attempt("key-lost", 31, 409, "y")
			corrected.Code, corrected.Fingerprint = "newer_attempt_refused", "B"
			r.attempts = append(r.attempts, refused, corrected)
		}},
		"refused, asked again, and never decided": {verify.Decided, func(r *run) {
			r.attempts = append(r.attempts, refusedTwice(30*time.Second+1, 31*time.Second)...)
		}},
		"answered, and not again in the end": {verify.Decided, func(r *run) {
			retry := attempt("key-o1", 60, 503, "")
			retry.Purpose = journal.Finishing
			r.attempts = append(r.attempts, retry)
		}},
		"never decided": {verify.Decided, func(r *run) {
			r.attempts = append(r.attempts, attempt("key-lost", 30, 503, ""))
		}},
	}
	broken := map[books.Rule]bool{verify.Resources: true, verify.Recovery: true, verify.KeysRecovered: true, verify.Conclusive: true,
		verify.OwnerOnly: true, verify.LeaseKept: true, verify.FailsClosed: true, verify.HangUpServed: true, verify.WaitedFor: true, verify.ReplicaAvailable: true, verify.AnswersConform: true, verify.NoStaleRecord: true,
		verify.TurnedAwayClean: true, verify.AnsweredFirst: true, verify.RoomLeft: true, verify.OnlyWholeCount: true, verify.OthersServed: true} // the campaign's own tests break these
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

func TestConsumed_WaitsForEveryEffect(t *testing.T) {
	t.Parallel()
	require.True(t, healthy().books.Consumed())
	for name, hurt := range map[string]func(*books.Books){
		"published": func(b *books.Books) { b.Events[3].Published = false },
		"confirmed": func(b *books.Books) { delete(b.Confirmations, "o1") },
		"noticed":   func(b *books.Books) { delete(b.WarehouseNotices, "o2") },
	} {
		b := healthy().books
		hurt(&b)
		require.False(t, b.Consumed(), name)
	}
}

func TestRepeated_CountsEventsNotAppearances(t *testing.T) {
	t.Parallel()
	b := books.Books{Streams: []books.Stream{{IDs: []string{"a", "b", "a", "a"}}, {IDs: []string{"b", "c", "c"}}}}
	require.Equal(t, 2, b.Repeated())
}

// A violation comes with the key whose history tells how it came about.
func TestAll_NamesTheKeyOfAViolation(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		plant func(*run)
		key   string
	}{
		"second charge":  {func(r *run) { r.books.Charges = append(r.books.Charges, r.books.Charges[0]) }, "key-p1"},
		"no charge":      {func(r *run) { r.books.Charges = nil }, "key-p1"},
		"no refund":      {func(r *run) { r.books.ProviderRefunds = nil }, "key-r1"},
		"unbalanced":     {func(r *run) { r.books.Transactions[0].Sum = 1 }, "key-t1"},
		"no transaction": {func(r *run) { r.books.Transactions = r.books.Transactions[1:] }, "key-t1"},
		"order's state":  {func(r *run) { r.books.Orders[1].Status = "pending" }, "key-p2"},
		"order never paid": {func(r *run) {
			r.see("key-o5", "o5")
			r.books.Orders = append(r.books.Orders, books.Order{ID: "o5", Account: account, Status: "paid"})
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
