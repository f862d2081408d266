package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/oncepay/oncepay/loadtest/books"
)

// kind is a row of the report: requests of one purpose on one road.
type kind string

// Singles go through nginx. A pair goes to the two replicas at the same
// moment, past nginx: it is the race that a lock must win.
const (
	newOrder   kind = "new order" // its key is new: 201, and not as a replay
	cardPay    kind = "card payment"
	walletPay  kind = "wallet payment"
	pairOrder  kind = "raced order" // its key is sent twice at once: 201, or 409 while the other runs
	pairCard   kind = "raced card payment"
	pairWallet kind = "raced wallet payment"
	duplicate  kind = "its duplicate"
	replay     kind = "replay"     // its key has been answered: the same 201 again
	mismatch   kind = "reused key" // its key belongs to another request: 422
)

// kinds are in the order of the report.
var kinds = []kind{newOrder, cardPay, walletPay, pairOrder, pairCard, pairWallet, duplicate, replay, mismatch}

// cycle is the mix, over and over. There are more orders than payments, so
// that there is always something to pay.
var cycle = [...]kind{
	newOrder, pairOrder, duplicate, cardPay, replay,
	newOrder, walletPay, newOrder, pairCard, duplicate,
	replay, newOrder, mismatch, cardPay, pairOrder,
	duplicate, pairWallet, duplicate, mismatch, replay,
}

func slot(n int) kind { return cycle[n%len(cycle)] }

// raced says whether a key is sent twice at once.
func (k kind) raced() bool {
	return slices.Contains([]kind{pairOrder, pairCard, pairWallet, duplicate}, k)
}

// due is when request n is to be sent, measured from the start: at a steady rate, except that a
// duplicate is sent at the very moment of the request before it.
func (c config) due(n int) time.Duration {
	if slot(n) == duplicate {
		n--
	}
	return time.Duration(float64(n) / float64(c.Rate) * float64(time.Second))
}

// pacer is a [vegeta.Pacer] of a plan.
type pacer struct{ cfg config }

func (p pacer) Pace(elapsed time.Duration, sent uint64) (wait time.Duration, stop bool) {
	n := int(sent)
	return max(0, p.cfg.due(n)-elapsed), n >= p.cfg.requests()
}

// Rate is the mean rate, per second.
func (p pacer) Rate(time.Duration) float64 { return float64(p.cfg.Rate) }

// pays has the payment methods of the kinds that pay.
var pays = map[kind]string{cardPay: "card", walletPay: "wallet", pairCard: "card", pairWallet: "wallet"}

// request is one request as it was planned.
type request struct {
	kind     kind
	base     string // URL of nginx or of a replica
	key      string
	customer string           // the customer's ID
	method   string           // of the payment; empty when an order is placed
	order    string           // the order that is paid
	amount   int64            // minor units: the order's total
	items    map[string]int64 // quantity by SKU, of an order that is placed
}

func (q request) placed(id, status string) books.Order {
	return books.Order{ID: id, Customer: q.customer, Status: status, Total: q.amount, Items: q.items}
}

func (q request) payment(id string) books.Payment {
	return books.Payment{ID: id, Order: q.order, Customer: q.customer, Method: q.method, Status: "succeeded", Amount: q.amount}
}

// encode is the path and the body: what was planned, or, where another request is due, more of the
// same order or the other way to pay. The nonce of a payment is no part of what its key is bound
// to.
func (q request) encode(nonce string) (path string, body any) {
	isOther := q.kind == mismatch
	if q.method == "" {
		var items []map[string]any
		for _, sku := range slices.Sorted(maps.Keys(q.items)) {
			quantity := q.items[sku]
			if isOther {
				quantity++
			}
			items = append(items, map[string]any{"sku": sku, "quantity": quantity})
		}
		return "/orders", map[string]any{"customer_id": q.customer, "items": items}
	}
	method := map[string]string{"type": "wallet"}
	if (q.method == "card") != isOther {
		method = map[string]string{"type": "card", "token": "tok_visa"}
	}
	return "/orders/" + q.order + "/payments", map[string]any{"method": method, "request_nonce": nonce}
}

// plan makes request n, from what has been answered so far, and the duplicate that follows a raced
// one. Where nothing is there to pay or to repeat yet, it is an order instead. l.mu is held.
func (l *load) plan(n int) (one, second request) {
	k := slot(n)
	switch {
	case (k == replay || k == mismatch) && len(l.finished) > 0:
		one = l.finished[rand.IntN(len(l.finished))]
		one.kind, one.base = k, l.cfg.BaseURL
		return one, second
	case pays[k] != "" && len(l.unpaid) > 0:
		one, l.unpaid = l.unpaid[0], l.unpaid[1:]
		one.kind, one.method, one.items = k, pays[k], nil
	case k.raced():
		one = l.newOrder(pairOrder)
	default:
		one = l.newOrder(newOrder)
	}
	one.key, one.base = fmt.Sprintf("%s-%d", l.shop.Run, n), l.cfg.BaseURL
	if k.raced() { // one goes to each replica, in turn
		one.base = l.cfg.API1URL
		second = one
		second.kind, second.base = duplicate, l.cfg.API2URL
		if l.pairs++; l.pairs%2 == 0 {
			one.base, second.base = second.base, one.base
		}
	}
	return one, second
}

func (l *load) newOrder(k kind) request {
	q := request{kind: k, items: map[string]int64{}, customer: l.shop.Customers[rand.IntN(len(l.shop.Customers))]}
	for range 1 + rand.IntN(2) {
		product := rand.IntN(productCount)
		if sku := l.shop.SKU(product); q.items[sku] == 0 {
			q.items[sku] = 1 + rand.Int64N(maxQuantity)
			q.amount += q.items[sku] * l.shop.Price(product)
		}
	}
	return q
}
