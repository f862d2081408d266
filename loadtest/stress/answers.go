package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/oncepay/oncepay/api/client"
	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/shop"
)

// operation is what a request asks for.
type operation string

// The operations whose effects are counted.
const (
	placeOrder operation = "order"
	payCard    operation = "card payment"
	payWallet  operation = "wallet payment"
)

// methods are the payment methods of operations.
var methods = map[operation]string{payCard: "card", payWallet: "wallet"}

// expectation is the plan for one request's answer.
type expectation string

// What may be expected of a request.
const (
	first         expectation = "first"    // its key is new: 201, and not as a replay
	raced         expectation = "raced"    // its key is sent twice at once: 201, or 409 while the other runs
	sentAgain     expectation = "replay"   // its key has been answered: the same 201 again
	otherRequest  expectation = "mismatch" // its key belongs to another request: 422
	inProgress                = "idempotency_in_progress"
	keyReused                 = "idempotency_key_reused"
	pending, paid             = "pending", "paid"
)

// request is one request as it was planned.
type request struct {
	key       string
	operation operation
	expect    expectation
	customer  string           // the customer's ID
	order     string           // the order that is paid; empty when one is placed
	amount    int64            // minor units: the order's total
	items     map[string]int64 // quantity by SKU, of an order that is placed
}

func (q request) placed(id, status string) books.Order {
	return books.Order{ID: id, Customer: q.customer, Status: status, Total: q.amount, Items: q.items}
}

func (q request) payment(id string) books.Payment {
	return books.Payment{ID: id, Order: q.order, Customer: q.customer, Method: methods[q.operation], Status: "succeeded", Amount: q.amount}
}

// The promises that this package checks, beside those of the books. Each has a test that breaks it.
const (
	answeredAsDue books.Rule = "every request was answered, with the status that was due"
	marked        books.Rule = "every replay is marked as one, and no first answer is"
	sameBytes     books.Rule = "every answer under a key has the same bytes"
	fits          books.Rule = "every answer fits its request"
	oneEffect     books.Rule = "no key was answered twice as new"
	acknowledged  books.Rule = "every key got its order or payment"
	orderKept     books.Rule = "every acknowledged order is there once, as it was answered"
	paymentKept   books.Rule = "every acknowledged payment is there, as it was answered"
	noSurplus     books.Rule = "there is no order or payment without a key"
	askedOnce     books.Rule = "the provider was asked once for each charge"
	inTime        books.Rule = "every event was published and had its effect in time"
)

// ofAnswers are checked as the answers arrive, ofBooks once all is read back.
var (
	ofAnswers = []books.Rule{answeredAsDue, marked, sameBytes, fits, oneEffect}
	ofBooks   = []books.Rule{
		acknowledged, orderKept, paymentKept, noSurplus, books.OneCharge, askedOnce, books.OrdersMatch, books.WalletsMatch, books.StockMatches,
	}
)

// answers are those that clients got, by key. Not safe for concurrent use.
type answers map[string]*entry

// entry is one key: its request, and the first 201 that it got.
type entry struct {
	request
	id    string // of the order or payment, once acknowledged
	body  []byte // nil: not acknowledged
	fresh int    // 201s that were no replay, so effects
}

// kept are the keys that got a 201, by what they did.
func (a answers) kept() map[operation][]*entry {
	all := map[operation][]*entry{}
	for _, e := range a {
		if e.body != nil {
			all[e.operation] = append(all[e.operation], e)
		}
	}
	return all
}

// record enters an answer and returns what is wrong with it. The ID is that of the order or payment
// which the answer acknowledges, empty otherwise.
func (a answers) record(q request, r *vegeta.Result) (id string, wrong []books.Violation) {
	e := a[q.key]
	if e == nil {
		e = &entry{request: q}
		a[q.key] = e
	}
	wrong = classify(q, r)
	if r.Code == http.StatusCreated && q.expect != otherRequest {
		wrong = append(wrong, e.acknowledge(r)...)
		id = e.id
	}
	return id, wrong
}

// classify compares the answer with the plan. vegeta sets the status last: without one, no whole
// answer came.
func classify(q request, r *vegeta.Result) []books.Violation {
	code, replayed := shop.ProblemCode(r.Body), isReplay(r)
	rule := answeredAsDue
	switch {
	case q.expect == otherRequest && r.Code == http.StatusUnprocessableEntity && code == keyReused,
		q.expect == raced && r.Code == http.StatusConflict && code == inProgress:
		return nil
	case q.expect == otherRequest || r.Code != http.StatusCreated:
	case q.expect == first && replayed, q.expect == sentAgain && !replayed:
		rule = marked
	default:
		return nil
	}
	return []books.Violation{books.Broken(rule, "%s %s, key %s: %d %s %s", q.expect, q.operation, q.key, r.Code, code, r.Error)}
}

func isReplay(r *vegeta.Result) bool { return r.Headers.Get(idempotency.HeaderReplay) == "true" }

// acknowledge enters a 201: one key has one effect and one body.
func (e *entry) acknowledge(r *vegeta.Result) (wrong []books.Violation) {
	if !isReplay(r) {
		e.fresh++
	}
	if e.fresh > 1 {
		wrong = append(wrong, books.Broken(oneEffect, "%s, key %s: answered %d times as new", e.operation, e.key, e.fresh))
	}
	if e.body != nil {
		if !bytes.Equal(e.body, r.Body) {
			wrong = append(wrong, books.Broken(sameBytes, "%s, key %s: %s and then %s", e.operation, e.key, e.body, r.Body))
		}
		return wrong
	}
	e.body = r.Body
	if !e.read(r.Body) {
		wrong = append(wrong, books.Broken(fits, "%s, key %s: asked for %d of order %q, got %s", e.operation, e.key, e.amount, e.order, r.Body))
	}
	return wrong
}

// read takes the ID from an answer, and reports whether it is one to this request.
func (e *entry) read(body []byte) bool {
	if e.operation == placeOrder {
		var o client.Order
		err := json.Unmarshal(body, &o)
		e.id = o.ID.String()
		return err == nil && reflect.DeepEqual(orderOf(o), e.placed(e.id, pending))
	}
	var p client.Payment
	err := json.Unmarshal(body, &p)
	e.id = p.ID.String()
	return err == nil && paymentOf(p, e.customer) == e.payment(e.id)
}

// check compares the answers that clients got with what is there, and what is there with itself. It
// finds nothing when every key had one effect, and nothing else had any.
func (a answers) check(b books.Books) (found []books.Violation) {
	for _, e := range a {
		if e.body == nil {
			found = append(found, books.Broken(acknowledged, "%s, key %s", e.operation, e.key))
		}
	}
	of := a.kept()
	payments := map[string]books.Payment{}
	isPaid := map[string]string{}
	for _, e := range slices.Concat(of[payCard], of[payWallet]) {
		payments[e.id], isPaid[e.order] = e.payment(e.id), paid
	}
	orders := map[string]books.Order{}
	for _, e := range of[placeOrder] {
		if _, twice := orders[e.id]; twice {
			found = append(found, books.Broken(orderKept, "order %s is the answer to two keys, one of them %s", e.id, e.key))
		}
		orders[e.id] = e.placed(e.id, cmp.Or(isPaid[e.id], pending))
	}
	found = append(found, compare(orderKept, orders, b.Orders, func(o books.Order) string { return o.ID })...)
	found = append(found, compare(paymentKept, payments, b.Payments, func(p books.Payment) string { return p.ID })...)
	for _, c := range b.Charges { // nothing fails in a load test
		if c.Attempts != 1 {
			found = append(found, books.Broken(askedOnce, "order %s: %+v", c.Reference, c))
		}
	}
	return append(found, books.CheckShop(b)...)
}

// compare has the rows that are there be those that were acknowledged, by their IDs.
func compare[T any](rule books.Rule, want map[string]T, rows []T, id func(T) string) (found []books.Violation) {
	is := map[string]T{}
	for _, row := range rows {
		if _, twice := is[id(row)]; twice {
			found = append(found, books.Broken(noSurplus, "listed twice: %+v", row))
		}
		is[id(row)] = row
	}
	for _, id := range slices.Sorted(maps.Keys(want)) {
		if row, ok := is[id]; !ok || !reflect.DeepEqual(row, want[id]) {
			found = append(found, books.Broken(rule, "want %+v, is %+v (there: %t)", want[id], row, ok))
		}
		delete(is, id)
	}
	for _, id := range slices.Sorted(maps.Keys(is)) {
		found = append(found, books.Broken(noSurplus, "%+v", is[id]))
	}
	return found
}
