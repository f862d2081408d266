package main

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

// loaded is a healthy load: an order paid by card, one paid from the wallet, one not paid, each
// with a replay and a mismatch.
type loaded struct {
	answers []answer
	books   books.Books
	events  *published
}

var items = map[string]int64{"tee": 2}

// id is one of a test: u("o1").
func u(name string) string { return uuid.NewSHA1(uuid.Nil, []byte(name)).String() }

var customer = u("customer")

func orderJSON(id string) string {
	return fmt.Sprintf(`{"id":%q,"customer_id":%q,"status":"pending","items":[{"sku":"tee","quantity":2}],"total":{"amount":200}}`, u(id), customer)
}

func paymentJSON(id, order, method string) string {
	return fmt.Sprintf(`{"id":%q,"order_id":%q,"status":"succeeded","method":{"type":%q},"amount":{"amount":200}}`, u(id), u(order), method)
}

func created(body string, replayed bool) answer {
	return answer{Attempt: journal.Attempt{Status: 201, Replayed: replayed}, body: []byte(body)}
}

func problem(status int, code string) answer {
	return answer{Attempt: journal.Attempt{Status: status}, body: fmt.Appendf(nil, `{"code":%q}`, code)}
}

func (l *loaded) record(q request, a answer) {
	a.request = q
	a.judge()
	l.answers = append(l.answers, a)
}

func order(id string) request {
	return request{key: "key-" + id, kind: newOrder, customer: customer, amount: 200, items: items}
}

func payment(id, method, of string) request {
	return request{key: "key-" + id, method: method, kind: newOrder, customer: customer, order: u(of), amount: 200}
}

func as(q request, k kind) request { q.kind = k; return q }

func paidWith(id, order, method string) books.Payment {
	return books.Payment{ID: u(id), Order: u(order), Customer: customer, Method: method, Status: "succeeded", Amount: 200}
}

func healthy() *loaded {
	l := &loaded{}
	bodies := map[string]string{
		"o1": orderJSON("o1"), "o2": orderJSON("o2"), "o3": orderJSON("o3"),
		"p1": paymentJSON("p1", "o1", "card"), "p2": paymentJSON("p2", "o2", "wallet"),
	}
	requests := map[string]request{
		"o1": order("o1"), "o2": order("o2"), "o3": order("o3"),
		"p1": payment("p1", "card", "o1"), "p2": payment("p2", "wallet", "o2"),
	}
	for _, id := range slices.Sorted(maps.Keys(requests)) {
		l.record(requests[id], created(bodies[id], false))
		l.record(as(requests[id], replay), created(bodies[id], true))
		l.record(as(requests[id], duplicate), problem(409, "idempotency_in_progress"))
		l.record(as(requests[id], mismatch), problem(422, "idempotency_key_reused"))
	}
	row := func(id, status string) books.Order {
		return books.Order{ID: u(id), Customer: customer, Status: status, Total: 200, Items: items}
	}
	l.books = books.Books{
		Orders:   []books.Order{row("o1", "paid"), row("o2", "paid"), row("o3", "pending")},
		Payments: []books.Payment{paidWith("p1", "o1", "card"), paidWith("p2", "o2", "wallet")},
		Charges:  []books.Charge{{ID: "ch_1", Reference: u("o1"), Status: "succeeded", Amount: 200, Attempts: 1}},
		TopUps:   []books.TopUp{{Customer: customer, Amount: 1000}},
		Wallets:  map[string]int64{customer: 800},
		Products: []books.Product{{SKU: "tee", Opening: 100, Stock: 94}},
	}
	l.events = &published{Written: 5, Consumed: latency{P99: 1000}}
	return l
}

func (l *loaded) violations() []books.Violation {
	kept, found := byKey(l.answers)
	return slices.Concat(found, check(kept, l.books), l.events.check(maxEventLag))
}

func TestAudit_FindsNothingInAHealthyRun(t *testing.T) {
	t.Parallel()
	l := healthy()
	require.Empty(t, l.violations())
	kept, _ := byKey(l.answers)
	require.Len(t, kept, 5)
}

// consequences are the shared checks that an anomaly may break as well.
var consequences = []books.Rule{books.OneCharge, books.OrdersMatch, books.StockMatches}

// Every rule is broken on its own, and must be the one that is reported, first.
func TestAudit_FindsEachPlantedAnomaly(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		rule  books.Rule
		plant func(*loaded)
	}{
		"connection reset": {answeredAsDue, func(l *loaded) {
			l.record(as(order("o1"), replay), answer{Attempt: journal.Attempt{Error: "connection reset"}})
		}},
		"500 on a replay": {answeredAsDue, func(l *loaded) {
			l.record(as(order("o1"), replay), problem(500, "internal"))
		}},
		"503 on a duplicate": {answeredAsDue, func(l *loaded) {
			l.record(as(order("o1"), duplicate), problem(503, "idempotency_in_progress"))
		}},
		"429": {answeredAsDue, func(l *loaded) {
			l.record(as(order("o1"), replay), problem(429, "rate_limited"))
		}},
		"409 on a replay": {answeredAsDue, func(l *loaded) {
			l.record(as(order("o1"), replay), problem(409, "idempotency_in_progress"))
		}},
		"another 409 on a duplicate": {answeredAsDue, func(l *loaded) {
			l.record(as(payment("p1", "card", "o1"), duplicate), problem(409, "order_not_payable"))
		}},
		"another 422 on a mismatch": {answeredAsDue, func(l *loaded) {
			l.record(as(order("o1"), mismatch), problem(422, "validation_failed"))
		}},
		"201 on a mismatch": {answeredAsDue, func(l *loaded) {
			l.record(as(order("o1"), mismatch), created(orderJSON("o1"), true))
		}},
		"200 instead of 201": {answeredAsDue, func(l *loaded) {
			l.record(as(order("o1"), replay), answer{Attempt: journal.Attempt{Status: 200}, body: []byte(orderJSON("o1"))})
		}},
		"replay without the header": {marked, func(l *loaded) {
			q := order("o4")
			l.record(as(q, duplicate), created(orderJSON("o4"), true)) // so that only one answer counts as new
			l.record(as(q, replay), created(orderJSON("o4"), false))
			l.exists("o4")
		}},
		"new key answered as a replay": {marked, func(l *loaded) {
			l.record(order("o4"), created(orderJSON("o4"), true))
			l.exists("o4")
		}},
		"both of a pair are new": {oneEffect, func(l *loaded) {
			q := as(order("o4"), duplicate)
			l.record(q, created(orderJSON("o4"), false))
			l.record(q, created(orderJSON("o4"), false))
			l.exists("o4")
		}},
		"replay with another body": {sameBytes, func(l *loaded) {
			l.record(as(order("o1"), replay), created(orderJSON("o1")+" ", true))
		}},
		"replay with another order": {sameBytes, func(l *loaded) {
			l.record(as(order("o1"), replay), created(orderJSON("o2"), true))
		}},
		"wrong total in the answer": {fits, func(l *loaded) {
			q := order("o4")
			q.amount = 300
			l.record(q, created(orderJSON("o4"), false))
			l.exists("o4")
			l.books.Orders[3].Total = 300
		}},
		"payment of another order in the answer": {fits, func(l *loaded) {
			l.record(payment("p3", "wallet", "o3"), created(paymentJSON("p3", "o1", "wallet"), false))
			l.books.Payments = append(l.books.Payments, paidWith("p3", "o3", "wallet"))
			l.books.Orders[2].Status = "paid"
			l.books.Wallets[customer] -= 200
		}},
		"both of a pair refused": {acknowledged, func(l *loaded) {
			q := as(order("o4"), duplicate)
			l.record(q, problem(409, "idempotency_in_progress"))
			l.record(q, problem(409, "idempotency_in_progress"))
		}},
		"payment by another method in the answer": {fits, func(l *loaded) {
			l.record(payment("p3", "wallet", "o3"), created(paymentJSON("p3", "o3", "card"), false))
			l.books.Payments = append(l.books.Payments, paidWith("p3", "o3", "wallet"))
			l.books.Orders[2].Status = "paid"
			l.books.Wallets[customer] -= 200
		}},
		"one order for two keys": {asAnswered, func(l *loaded) {
			l.record(order("o4"), created(orderJSON("o3"), false))
		}},
		"lost acknowledgement": {asAnswered, func(l *loaded) {
			l.books.Orders = l.books.Orders[:2]
		}},
		"second order under one key": {asAnswered, func(l *loaded) {
			row := l.books.Orders[2]
			row.ID = u("o5")
			l.books.Orders = append(l.books.Orders, row)
		}},
		"order listed twice": {asAnswered, func(l *loaded) {
			l.books.Orders = append(l.books.Orders, l.books.Orders[0])
		}},
		"paid order is pending": {asAnswered, func(l *loaded) {
			l.books.Orders[0].Status = "pending"
		}},
		"unpaid order is paid": {asAnswered, func(l *loaded) {
			l.books.Orders[2].Status = "paid"
		}},
		"order of another quantity": {asAnswered, func(l *loaded) {
			l.books.Orders[2].Items = map[string]int64{"tee": 4}
		}},
		"lost payment": {asAnswered, func(l *loaded) {
			l.books.Payments = l.books.Payments[1:]
		}},
		"payment still processing": {asAnswered, func(l *loaded) {
			l.books.Payments[0].Status = "processing"
		}},
		"missing charge": {books.OneCharge, func(l *loaded) {
			l.books.Charges = nil
		}},
		"second charge for one key": {books.OneCharge, func(l *loaded) {
			second := l.books.Charges[0]
			second.ID = "ch_2"
			l.books.Charges = append(l.books.Charges, second)
		}},
		"charge for a wallet payment": {books.OneCharge, func(l *loaded) {
			l.books.Charges = append(l.books.Charges, books.Charge{ID: "ch_2", Reference: u("o2"), Status: "succeeded", Amount: 200, Attempts: 1})
		}},
		"charge of another amount": {books.OneCharge, func(l *loaded) {
			l.books.Charges[0].Amount = 199
		}},
		"charge declined": {books.OneCharge, func(l *loaded) {
			l.books.Charges[0].Status = "declined"
		}},
		"provider asked twice": {askedOnce, func(l *loaded) {
			l.books.Charges[0].Attempts = 2
		}},
		"wallet debited twice": {books.WalletsMatch, func(l *loaded) {
			l.books.Wallets[customer] -= 200
		}},
		"wallet unknown": {books.WalletsMatch, func(l *loaded) {
			delete(l.books.Wallets, customer)
		}},
		"order paid under two keys": {books.OrdersMatch, func(l *loaded) {
			l.record(payment("p9", "wallet", "o2"), created(paymentJSON("p9", "o2", "wallet"), false))
			l.books.Payments = append(l.books.Payments, paidWith("p9", "o2", "wallet"))
			l.books.Wallets[customer] -= 200
		}},
		"payment without a key": {asAnswered, func(l *loaded) {
			l.books.Payments = append(l.books.Payments, paidWith("p9", "o2", "wallet"))
			l.books.Wallets[customer] -= 200
		}},
		"stock reserved twice": {books.StockMatches, func(l *loaded) {
			l.books.Products[0].Stock -= 2
		}},
		"event not published": {inTime, func(l *loaded) {
			l.events.Outstanding = 1
		}},
		"consumed late": {inTime, func(l *loaded) {
			l.events.Consumed.P99 = 1001
		}},
	}
	broken := map[books.Rule]bool{}
	for name, test := range tests {
		broken[test.rule] = true
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := healthy()
			test.plant(l)
			found := l.violations()
			require.NotEmpty(t, found)
			require.Equal(t, test.rule, found[0].Rule, "%v", found)
			require.NotEmpty(t, found[0].Detail)
			for _, also := range found[1:] {
				require.Contains(t, consequences, also.Rule, "%v", found)
			}
		})
	}
	for _, rule := range slices.Concat(ofAnswers, ofBooks, []books.Rule{inTime}) {
		require.True(t, broken[rule], "no test breaks: %s", rule)
	}
}

// exists puts an order into the state as it should be after its 201.
func (l *loaded) exists(id string) {
	l.books.Orders = append(l.books.Orders, books.Order{ID: u(id), Customer: customer, Status: "pending", Total: 200, Items: items})
	l.books.Products[0].Stock -= 2
}
