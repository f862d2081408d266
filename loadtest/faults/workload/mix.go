package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/shop"
)

// mix is what clients do, in parts of a hundred.
var mix = []struct {
	size int
	do   func(*action, context.Context, string)
}{
	{42, (*action).buy},           // an order, its payment, and sometimes a refund
	{6, (*action).storm},          // several orders at once for the last units of a product
	{8, (*action).topUp},          // money into a wallet
	{4, (*action).hangUp},         // an order whose client closes the connection
	{14, (*action).burstOfOrders}, // one order from several places at once
	{8, (*action).reuse},          // another request with a key that was used
	{2, (*action).refuse},         // an order that is refused, and whose older copies must not act
	{2, (*action).waitPatiently},  // a top-up from several places, each of which waits for the answer
	{8, (*action).shareKey},       // one key in two accounts
	{4, (*action).trade},          // changes of a product's stock while others order it
	{2, (*action).rename},         // changes of a customer's name
}

const (
	// maxBurst is how many send something at once; two at least.
	maxBurst = 8
	// neverBack is the share of payments and refunds whose client does not retry, whatever the
	// answer.
	neverBack = 0.08
	// duplicated payments and refunds are sent as a burst, refunded payments get a refund, and
	// regretted orders are cancelled while they are paid, or when something scarce was won.
	duplicated, refunded, regretted = 0.25, 0.25, 0.12
	givenUp                         = 0.50
	// refundedTwice is the share of refunds beside which another one of the same payment is asked
	// for.
	refundedTwice = 0.30
	// testsCards is the share of purchases in which somebody tries out cards, about as many as an
	// order takes.
	testsCards = 0.02
	// patience is longer than a client may ask the server to wait, and the work that follows;
	// waiting is how many send a request and wait for one answer.
	patience, waiting = 45 * time.Second, 4
	// soonest and latest are when a client hangs up: while its order is being placed, if it has
	// luck.
	soonest, latest = time.Millisecond, 25 * time.Millisecond
)

// act does one thing that people, and their networks, do.
func (a *action) act(ctx context.Context) {
	account := a.shop.Accounts[0]
	if a.random.IntN(8) == 0 {
		account = a.shop.Accounts[1]
	}
	draw := a.random.IntN(100)
	for _, part := range mix {
		if draw -= part.size; draw < 0 {
			part.do(a, ctx, account)
			return
		}
	}
}

func (a *action) buy(ctx context.Context, account string) {
	placed := a.do(ctx, a.order(account, a.ampleItems()...))
	if placed.Resource == "" {
		return
	}
	payment := a.payment(account, placed.Resource, a.method())
	if a.chance(testsCards) {
		payment = a.testCards(ctx, account, placed.Resource)
	}
	var paid journal.Attempt
	if a.chance(regretted) {
		paid = a.race(ctx, payment, a.cancel(account, placed.Resource))
	} else {
		paid = a.sendAnyhow(ctx, payment)
	}
	if paid.Resource != "" && a.chance(refunded) {
		a.giveBack(ctx, account, paid.Resource)
	}
}

// testCards has cards of an order declined, one after the other. It returns the next payment, whose
// charge has to be looked up among those.
func (a *action) testCards(ctx context.Context, account, order string) (next Request) {
	for i := range books.MaxDeclines - 3 + a.random.IntN(6) {
		a.do(ctx, a.payment(account, order, card("tok_declined")).numbered(i))
	}
	return a.payment(account, order, card("tok_charged_revoked"))
}

// giveBack asks for a refund, or for two at once, which may be more than was paid.
func (a *action) giveBack(ctx context.Context, account, payment string) {
	if a.chance(refundedTwice) {
		a.race(ctx, a.refund(account, payment), a.refund(account, payment).numbered(2))
		return
	}
	a.sendAnyhow(ctx, a.refund(account, payment))
}

// hangUp breaks the connection while an order may be being placed, and does not come back.
func (a *action) hangUp(ctx context.Context, account string) {
	r := a.order(account, a.ampleItems()...)
	r.Via, r.Purpose = endpoints[a.random.IntN(2)], journal.HangUp // directly: nginx would make up its own mind
	r.Leaves, r.Patience = true, soonest+rand.N(latest-soonest)
	a.call(ctx, r)
}

// sendAnyhow sends a request that moves money once and never again, as a burst, or as one should.
func (a *action) sendAnyhow(ctx context.Context, r Request) journal.Attempt {
	switch {
	case a.chance(neverBack):
		r.Purpose, r.Leaves = journal.WalkAway, true
		a.call(ctx, r)
		return journal.Attempt{}
	case a.chance(duplicated):
		return a.burst(ctx, r)
	}
	return a.do(ctx, r)
}

// race sends two requests about the same thing to the two replicas at once, and returns the answer
// to the first.
func (a *action) race(ctx context.Context, requests ...Request) journal.Attempt {
	for i := range requests {
		requests[i].Purpose, requests[i].Via = journal.Race, endpoints[i]
		a.repeat(ctx, requests[i])
	}
	return a.together(ctx, requests...)[0]
}

// storm asks for the same scarce product in several requests at once, each with a key of its own.
// Winners never pay: some cancel, and what the others hold comes back when their orders expire.
func (a *action) storm(ctx context.Context, account string) {
	requests := make([]Request, 2+a.random.IntN(maxBurst-1))
	for i := range requests {
		r := a.order(account, item(scarce, 1+a.random.Int64N(2))).numbered(i)
		r.Purpose, r.Via = journal.Storm, endpoints[i%len(endpoints)]
		a.repeat(ctx, r)
		requests[i] = r
	}
	for i, won := range a.together(ctx, requests...) {
		if givesUp := a.chance(givenUp); won.Resource != "" && givesUp {
			a.do(ctx, a.cancel(account, won.Resource).numbered(i))
		}
	}
}

func (a *action) topUp(ctx context.Context, account string) { a.do(ctx, a.money(account)) }

// waitPatiently has several places send one top-up through nginx, each of which asks for the
// longest wait. However long that takes, it is no failure of a replica.
func (a *action) waitPatiently(ctx context.Context, account string) {
	r := a.money(account)
	r.Via, r.Purpose, r.Prefer, r.Patience = nginx, journal.Patient, "wait=30", patience
	a.together(ctx, slices.Repeat([]Request{r}, waiting)...)
}

func (a *action) burstOfOrders(ctx context.Context, account string) {
	a.burst(ctx, a.order(account, a.ampleItems()...))
}

// burst sends one request from 2 to 8 places at once, at both replicas and nginx; each place
// retries for itself. It returns an answer that has the resource, if there is one.
func (a *action) burst(ctx context.Context, r Request) journal.Attempt {
	places := make([]Request, 2+a.random.IntN(maxBurst-1))
	for i := range places {
		places[i] = r
		places[i].Purpose, places[i].Via, places[i].Prefer = journal.Burst, endpoints[i%len(endpoints)], preference()
	}
	a.repeat(ctx, r)
	if a.chance(lookedUp) {
		var looking sync.WaitGroup
		defer looking.Wait()
		looking.Go(func() { a.wire.LookUp(ctx, r, nginx) })
	}
	answers := a.together(ctx, places...)
	return answers[max(0, slices.IndexFunc(answers, func(is journal.Attempt) bool { return is.Resource != "" }))]
}

// reuse sends a request, and at the same time or after it another one with its key.
func (a *action) reuse(ctx context.Context, account string) {
	first := a.order(account, item(ample[0], 1))
	second := a.order(account, item(ample[1], 2))
	second.Purpose = journal.Reuse
	switch ending := a.random.Float64(); {
	case ending < 0.5:
		a.do(ctx, first)
		a.call(ctx, second)
	case ending < 0.75:
		a.contest(ctx, second)
	default:
		a.repeat(ctx, first)
		a.together(ctx, first, second)
	}
}

// contest sends a request beside one with the same key that is refused: the key is free in the end,
// however they meet.
func (a *action) contest(ctx context.Context, r Request) {
	refused := a.order(r.Account, item(a.laterSKU(), 1))
	refused.Purpose = journal.Refusal
	var group sync.WaitGroup
	group.Go(func() { a.wire.Call(ctx, refused) })
	a.call(ctx, r)
	group.Wait()
}

// shareKey has two accounts use the same key, each for an order of its own.
func (a *action) shareKey(ctx context.Context, _ string) {
	for _, account := range a.shop.Accounts {
		r := a.order(account, a.ampleItems()...)
		r.Purpose = journal.OtherAccount
		a.do(ctx, r)
	}
}

// together sends requests side by side, and returns their last answers.
func (a *action) together(ctx context.Context, requests ...Request) []journal.Attempt {
	answers := make([]journal.Attempt, len(requests))
	sideBySide(len(requests), func(i int) int {
		answers[i] = a.call(ctx, requests[i])
		return 0
	})
	return answers
}

// operations are the methods and paths of what clients ask for. $ stands for the ID of what it is
// about.
var operations = map[string]string{
	"order":        "POST /orders",
	"payment":      "POST /orders/$/payments",
	"cancel":       "PATCH /orders/$",
	"refund":       "POST /payments/$/refunds",
	"customer":     "POST /customers",
	"top-up":       "POST /customers/$/top-ups",
	journal.Rename: "PATCH /customers/$",
	"product":      "PUT /products/$",
	"restock":      "PATCH /products/$",
	"look":         "GET /products/$",
}

// request makes a new logical request, whose key tells who made it and what for.
func (a *action) request(account, operation, about string, body map[string]any) Request {
	method, path, _ := strings.Cut(operations[operation], " ")
	asks := journal.Attempt{Account: account, Key: fmt.Sprintf("faults-%d-%d-%s", a.id, a.n, operation), Operation: operation,
		Client: a.id, Purpose: journal.Alone}
	return Request{Attempt: asks, Method: method, Path: strings.Replace(path, "$", about, 1), Body: shop.Encode(body)}
}

// numbered is one of several requests for one operation.
func (r Request) numbered(i int) Request {
	r.Key += fmt.Sprintf("-%d", i)
	return r
}

func (a *action) order(account string, items ...any) Request {
	return a.request(account, "order", "", map[string]any{"customer_id": a.customer(account), "items": items})
}

func (a *action) payment(account, order string, method map[string]any) Request {
	return a.request(account, "payment", order, map[string]any{"method": method})
}

// money is put into a wallet.
func (a *action) money(account string) Request {
	amount := shop.Dollars(1 + a.random.Int64N(500))
	return a.request(account, "top-up", a.customer(account), map[string]any{"amount": amount})
}

func (a *action) cancel(account, order string) Request {
	return a.request(account, "cancel", order, map[string]any{"status": "cancelled"})
}

// refund is one of all or of a part.
func (a *action) refund(account, payment string) Request {
	body := map[string]any{}
	if a.chance(0.5) {
		body["amount"] = shop.Dollars(1 + a.random.Int64N(200))
	}
	return a.request(account, "refund", payment, body)
}

// method is a wallet, or a card of any temper.
func (a *action) method() map[string]any {
	tokens := []string{"tok_visa", "tok_visa", "tok_visa", "tok_visa", "tok_visa", "tok_visa", "tok_declined", "tok_insufficient_funds",
		"tok_charged_no_answer", "tok_charged_silent", "tok_charged_revoked", "tok_error_first", "tok_slow_1s"}
	if a.random.IntN(3) == 0 {
		return map[string]any{"type": "wallet"}
	}
	return card(tokens[a.random.IntN(len(tokens))])
}

func card(token string) map[string]any { return map[string]any{"type": "card", "token": token} }

func (a *action) customer(account string) string {
	all := a.shop.Customers[account]
	return all[a.random.IntN(len(all))]
}

func (a *action) ampleItems() []any {
	items := []any{}
	for _, i := range a.random.Perm(len(ample))[:1+a.random.IntN(2)] {
		items = append(items, item(ample[i], 1+a.random.Int64N(3)))
	}
	return items
}

func item(sku string, quantity int64) any { return map[string]any{"sku": sku, "quantity": quantity} }
