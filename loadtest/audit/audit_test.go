package audit_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/loadtest/audit"
	"github.com/oncepay/oncepay/loadtest/books"
)

// run is a healthy load: an order paid by card, one paid from the wallet, one not paid, each with a
// replay and a mismatch.
type run struct {
	answers *audit.Answers
	state   audit.State
	wrong   []audit.Violation // what Record found
}

const customer = "customer-1"

var items = map[string]int64{"tee": 2}

func orderBody(id string) string {
	return fmt.Sprintf(`{"id":%q,"customer_id":%q,"status":"pending","items":[{"sku":"tee","quantity":2}],"total":{"amount":200}}`, id, customer)
}

func paymentBody(id, order string) string {
	return fmt.Sprintf(`{"id":%q,"order_id":%q,"status":"succeeded","amount":{"amount":200}}`, id, order)
}

func created(body string, replayed bool) audit.Answer {
	return audit.Answer{Status: 201, Replayed: replayed, Body: []byte(body)}
}

func problem(status int, code string) audit.Answer {
	return audit.Answer{Status: status, Body: fmt.Appendf(nil, `{"code":%q}`, code)}
}

func (b *run) record(q audit.Request, a audit.Answer) {
	_, wrong := b.answers.Record(q, a)
	b.wrong = append(b.wrong, wrong...)
}

func order(id string) audit.Request {
	return audit.Request{Key: "key-" + id, Operation: audit.Order, Expect: audit.First, Customer: customer, Amount: 200, Items: items}
}

func payment(id string, op audit.Operation, of string) audit.Request {
	return audit.Request{Key: "key-" + id, Operation: op, Expect: audit.First, Customer: customer, Order: of, Amount: 200}
}

func as(q audit.Request, e audit.Expectation) audit.Request { q.Expect = e; return q }

func paid(id, order, method string) books.Payment {
	return books.Payment{ID: id, Order: order, Customer: customer, Method: method, Status: "succeeded", Amount: 200}
}

func healthy() *run {
	b := &run{answers: audit.NewAnswers()}
	answers := map[string]string{
		"o1": orderBody("o1"), "o2": orderBody("o2"), "o3": orderBody("o3"),
		"p1": paymentBody("p1", "o1"), "p2": paymentBody("p2", "o2"),
	}
	requests := map[string]audit.Request{
		"o1": order("o1"), "o2": order("o2"), "o3": order("o3"),
		"p1": payment("p1", audit.Card, "o1"), "p2": payment("p2", audit.Wallet, "o2"),
	}
	for _, id := range slices.Sorted(maps.Keys(requests)) {
		b.record(requests[id], created(answers[id], false))
		b.record(as(requests[id], audit.Replay), created(answers[id], true))
		b.record(as(requests[id], audit.Raced), problem(409, "idempotency_in_progress"))
		b.record(as(requests[id], audit.Mismatch), problem(422, "idempotency_key_reused"))
	}
	row := func(id, status string) books.Order {
		return books.Order{ID: id, Customer: customer, Status: status, Total: 200, Items: items}
	}
	b.state = audit.State{
		Books: books.Books{
			Orders:   []books.Order{row("o1", "paid"), row("o2", "paid"), row("o3", "pending")},
			Payments: []books.Payment{paid("p1", "o1", "card"), paid("p2", "o2", "wallet")},
			Charges:  []books.Charge{{ID: "ch_1", Reference: "o1", Status: "succeeded", Amount: 200, Attempts: 1}},
			TopUps:   []books.TopUp{{Customer: customer, Amount: 1000}},
			Wallets:  map[string]int64{customer: 800},
			Products: []books.Product{{SKU: "tee", Opening: 100, Stock: 94}},
		},
		Events: &audit.Events{Written: 5, Consumed: audit.Lag{P99: time.Second}},
	}
	return b
}

func (b *run) violations() []audit.Violation {
	return append(b.wrong, audit.Check(b.answers, b.state)...)
}

func TestCheck_FindsNothingInAHealthyRun(t *testing.T) {
	t.Parallel()
	b := healthy()
	require.Empty(t, b.violations())
	require.Equal(t, 3, b.answers.Acknowledged(audit.Order))
	require.Equal(t, 1, b.answers.Acknowledged(audit.Card))
	require.Equal(t, 1, b.answers.Acknowledged(audit.Wallet))
}

// consequences are the shared checks that an anomaly may break as well.
var consequences = []audit.Rule{books.OneCharge, books.OrdersMatch, books.StockMatches}

// Every rule is broken on its own, and must be the one that is reported, first.
func TestCheck_FindsEachPlantedAnomaly(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		rule  audit.Rule
		plant func(*run)
	}{
		"connection reset": {audit.NoAnswer, func(b *run) {
			b.record(as(order("o1"), audit.Replay), audit.Answer{Err: "connection reset"})
		}},
		"500 on a replay": {audit.ServerError, func(b *run) {
			b.record(as(order("o1"), audit.Replay), problem(500, "internal"))
		}},
		"503 on a duplicate": {audit.ServerError, func(b *run) {
			b.record(as(order("o1"), audit.Raced), problem(503, "idempotency_in_progress"))
		}},
		"429": {audit.WrongStatus, func(b *run) {
			b.record(as(order("o1"), audit.Replay), problem(429, "rate_limited"))
		}},
		"409 on a replay": {audit.WrongStatus, func(b *run) {
			b.record(as(order("o1"), audit.Replay), problem(409, "idempotency_in_progress"))
		}},
		"another 409 on a duplicate": {audit.WrongStatus, func(b *run) {
			b.record(as(payment("p1", audit.Card, "o1"), audit.Raced), problem(409, "order_not_payable"))
		}},
		"another 422 on a mismatch": {audit.WrongStatus, func(b *run) {
			b.record(as(order("o1"), audit.Mismatch), problem(422, "validation_failed"))
		}},
		"201 on a mismatch": {audit.WrongStatus, func(b *run) {
			b.record(as(order("o1"), audit.Mismatch), created(orderBody("o1"), true))
		}},
		"200 instead of 201": {audit.WrongStatus, func(b *run) {
			b.record(as(order("o1"), audit.Replay), audit.Answer{Status: 200, Replayed: true, Body: []byte(orderBody("o1"))})
		}},
		"replay without the header": {audit.NotReplayed, func(b *run) {
			q := order("o4")
			b.record(q, created(orderBody("o4"), true)) // so that only one answer counts as new
			b.wrong = nil
			b.record(as(q, audit.Replay), created(orderBody("o4"), false))
			b.exists("o4")
		}},
		"new key answered as a replay": {audit.WrongReplay, func(b *run) {
			b.record(order("o4"), created(orderBody("o4"), true))
			b.exists("o4")
		}},
		"both of a pair are new": {audit.SecondEffect, func(b *run) {
			q := as(order("o4"), audit.Raced)
			b.record(q, created(orderBody("o4"), false))
			b.record(q, created(orderBody("o4"), false))
			b.exists("o4")
		}},
		"replay with another body": {audit.BodiesDiffer, func(b *run) {
			b.record(as(order("o1"), audit.Replay), created(orderBody("o1")+" ", true))
		}},
		"replay with another order": {audit.BodiesDiffer, func(b *run) {
			b.record(as(order("o1"), audit.Replay), created(orderBody("o2"), true))
		}},
		"wrong total in the answer": {audit.WrongAnswer, func(b *run) {
			q := order("o4")
			q.Amount = 300
			b.record(q, created(orderBody("o4"), false))
			b.exists("o4")
			b.state.Books.Orders[3].Total = 300
		}},
		"payment of another order in the answer": {audit.WrongAnswer, func(b *run) {
			b.record(payment("p3", audit.Wallet, "o3"), created(paymentBody("p3", "o1"), false))
			b.state.Books.Payments = append(b.state.Books.Payments, paid("p3", "o3", "wallet"))
			b.state.Books.Orders[2].Status = "paid"
			b.state.Books.Wallets[customer] -= 200
		}},
		"both of a pair refused": {audit.Unacknowledged, func(b *run) {
			q := as(order("o4"), audit.Raced)
			b.record(q, problem(409, "idempotency_in_progress"))
			b.record(q, problem(409, "idempotency_in_progress"))
		}},
		"lost acknowledgement": {audit.LostOrder, func(b *run) {
			b.state.Books.Orders = b.state.Books.Orders[:2]
		}},
		"second order under one key": {audit.SurplusOrder, func(b *run) {
			row := b.state.Books.Orders[2]
			row.ID = "o5"
			b.state.Books.Orders = append(b.state.Books.Orders, row)
		}},
		"order listed twice": {audit.SurplusOrder, func(b *run) {
			b.state.Books.Orders = append(b.state.Books.Orders, b.state.Books.Orders[0])
		}},
		"paid order is pending": {audit.WrongOrder, func(b *run) {
			b.state.Books.Orders[0].Status = "pending"
		}},
		"unpaid order is paid": {audit.WrongOrder, func(b *run) {
			b.state.Books.Orders[2].Status = "paid"
		}},
		"order of another quantity": {audit.WrongOrder, func(b *run) {
			b.state.Books.Orders[2].Items = map[string]int64{"tee": 4}
		}},
		"lost payment": {audit.LostPayment, func(b *run) {
			b.state.Books.Payments = b.state.Books.Payments[1:]
		}},
		"payment still processing": {audit.WrongPayment, func(b *run) {
			b.state.Books.Payments[0].Status = "processing"
		}},
		"missing charge": {books.OneCharge, func(b *run) {
			b.state.Books.Charges = nil
		}},
		"second charge for one key": {books.OneCharge, func(b *run) {
			second := b.state.Books.Charges[0]
			second.ID = "ch_2"
			b.state.Books.Charges = append(b.state.Books.Charges, second)
		}},
		"charge for a wallet payment": {books.OneCharge, func(b *run) {
			b.state.Books.Charges = append(b.state.Books.Charges, books.Charge{ID: "ch_2", Reference: "o2", Status: "succeeded", Amount: 200, Attempts: 1})
		}},
		"charge of another amount": {books.OneCharge, func(b *run) {
			b.state.Books.Charges[0].Amount = 199
		}},
		"charge declined": {books.OneCharge, func(b *run) {
			b.state.Books.Charges[0].Status = "declined"
		}},
		"provider asked twice": {audit.AskedAgain, func(b *run) {
			b.state.Books.Charges[0].Attempts = 2
		}},
		"wallet debited twice": {books.WalletsMatch, func(b *run) {
			b.state.Books.Wallets[customer] -= 200
		}},
		"wallet unknown": {books.WalletsMatch, func(b *run) {
			delete(b.state.Books.Wallets, customer)
		}},
		"order paid twice": {books.OrdersMatch, func(b *run) {
			b.state.Books.Payments = append(b.state.Books.Payments, paid("p9", "o2", "wallet"))
			b.state.Books.Wallets[customer] -= 200
		}},
		"stock reserved twice": {books.StockMatches, func(b *run) {
			b.state.Books.Products[0].Stock -= 2
		}},
		"event not published": {audit.LateEvents, func(b *run) {
			b.state.Events.Outstanding = 1
		}},
		"consumed late": {audit.LateEvents, func(b *run) {
			b.state.Events.Consumed.P99 = time.Second + 1
		}},
	}
	broken := map[audit.Rule]bool{}
	for name, test := range tests {
		broken[test.rule] = true
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := healthy()
			test.plant(b)
			found := b.violations()
			require.NotEmpty(t, found)
			require.Equal(t, test.rule, found[0].Rule, "%v", found)
			require.NotEmpty(t, found[0].Detail)
			for _, also := range found[1:] {
				require.Contains(t, consequences, also.Rule, "%v", found)
			}
		})
	}
	require.Len(t, broken, 20, "a rule has no test")
}

// exists puts an order into the state as it should be after its 201.
func (b *run) exists(id string) {
	b.state.Books.Orders = append(b.state.Books.Orders, books.Order{ID: id, Customer: customer, Status: "pending", Total: 200, Items: items})
	b.state.Books.Products[0].Stock -= 2
}
