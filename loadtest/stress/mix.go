package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"

	"github.com/oncepay/oncepay/api/client"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/shop"
)

// kind is what a request is for.
type kind struct {
	name   journal.Purpose
	method client.MethodType // of a payment
	raced  bool              // sent twice at once, to both replicas past nginx: a lock must let one win
}

var (
	newOrder      = kind{name: "new order"}
	cardPayment   = kind{name: "card payment", method: "card"}
	walletPayment = kind{name: "wallet payment", method: "wallet"}
	racedOrder    = kind{name: "raced order", raced: true}
	racedCard     = kind{name: "raced card payment", method: "card", raced: true}
	racedWallet   = kind{name: "raced wallet payment", method: "wallet", raced: true}
	replay        = kind{name: "replay"}     // its key has been answered
	reused        = kind{name: "reused key"} // its key belongs to another request
)

// cycle is the mix, over and over. There are more orders than payments, so that there is always
// something to pay.
var cycle = [...]kind{
	newOrder, racedOrder, racedOrder, cardPayment, replay,
	newOrder, walletPayment, newOrder, racedCard, racedCard,
	replay, newOrder, reused, cardPayment, racedOrder,
	racedOrder, racedWallet, racedWallet, reused, replay,
}

func slot(n int) kind { return cycle[n%len(cycle)] }

// isSecond says whether request n is the second one of a race.
func isSecond(n int) bool { return slot(n).raced && slot(n) == slot(n-1) }

// due says whether an answer is one that the kind may have where there are no faults.
func (k kind) due(a journal.Attempt) bool {
	switch a.Status {
	case http.StatusCreated:
		return k.raced || k != reused && a.Replayed == (k == replay)
	case http.StatusConflict:
		return k.raced && a.Outcome() == journal.InProgress
	}
	return k == reused && a.Status == http.StatusUnprocessableEntity && a.Outcome() == journal.Reused
}

// resource is what is compared of orders, payments, wallets and products: in the plan, in answers,
// and when everything is read back. Bodies of requests are such, too.
type resource struct {
	ID         string               `json:"id,omitzero"`
	CustomerID string               `json:"customer_id,omitzero"`
	OrderID    string               `json:"order_id,omitzero"` // of a payment
	Status     string               `json:"status,omitzero"`
	Method     client.PaymentMethod `json:"method,omitzero"`
	Items      []item               `json:"items,omitzero"`
	Total      client.Money         `json:"total,omitzero"`
	Amount     client.Money         `json:"amount,omitzero"`
	Balance    client.Money         `json:"balance,omitzero"`
	Stock      int64                `json:"stock,omitzero"`
}

type item struct {
	SKU      string `json:"sku"`
	Quantity int64  `json:"quantity"`
}

func (r resource) String() string {
	text, _ := json.Marshal(r) // strings and integers
	return string(text)
}

// request is one request as it was planned.
type request struct {
	kind            kind
	base, key, path string
	body, want      resource // want is what a 201 shows; its ID is known later
}

// plan makes request n, from what has been answered so far. Where nothing is there to pay or to
// repeat yet, it is an order instead. l.mu is held.
func (l *load) plan(n int) (q request) {
	k := slot(n)
	switch {
	case isSecond(n):
		q = l.sent[n-1]
		q.base = map[string]string{l.API1URL: l.API2URL, l.API2URL: l.API1URL}[q.base]
		return q
	case (k == replay || k == reused) && len(l.answered) > 0:
		q = l.answered[rand.IntN(len(l.answered))]
		if k == reused {
			q.path, q.body = "/orders", l.newOrder(10).body // so many are ordered by no other request
		}
	case k.method != "" && len(l.unpaid) > 0:
		q, l.unpaid = payment(k.method, l.unpaid[0]), l.unpaid[1:]
	case k.raced:
		k, q = racedOrder, l.newOrder(0)
	default:
		k, q = newOrder, l.newOrder(0)
	}
	q.kind, q.base, q.key = k, l.BaseURL, cmp.Or(q.key, fmt.Sprintf("%s-%d", l.shop.Run, n))
	if k.raced {
		q.base = []string{l.API1URL, l.API2URL}[rand.IntN(2)]
	}
	return q
}

func payment(by client.MethodType, order resource) request {
	q := request{path: "/orders/" + order.ID + "/payments", body: resource{Method: client.PaymentMethod{Type: by}}}
	q.want = resource{OrderID: order.ID, Status: "succeeded", Method: q.body.Method, Amount: order.Total}
	if by == "card" {
		q.body.Method.Token = new("tok_visa")
	}
	return q
}

// newOrder has one product or two neighbours, of each one to three and so many more.
func (l *load) newOrder(more int64) request {
	body := resource{CustomerID: l.shop.Customers[rand.IntN(customerCount)]}
	total, first := int64(0), rand.IntN(productCount)
	for i := range 1 + rand.IntN(2) {
		ordered := item{l.shop.SKU(first + i), 1 + rand.Int64N(3) + more}
		body.Items = append(body.Items, ordered)
		total += ordered.Quantity * l.shop.Price(first+i)
	}
	want := body
	want.Status, want.Total = "pending", shop.Dollars(total)
	return request{path: "/orders", body: body, want: want}
}
