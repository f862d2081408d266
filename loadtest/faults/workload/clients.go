package workload

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

const (
	// thinkTime, at most, between two things that a client does: enough clients then make a steady load, not a benchmark.
	thinkTime = 250 * time.Millisecond
	// resend is the share of finished requests that are sent again later.
	resend = 0.10
	// neverBack is the share of payments and refunds whose client does not come back, whatever it was told.
	neverBack = 0.08
	// maxBurst is how many send one request at once.
	maxBurst = 8
	// settlers resolve what was left open side by side.
	settlers = 16
)

// Clients are the campaign's. Make them by NewClients and let them Run.
type Clients struct {
	wire *Wire
	shop *Shop
	seed uint64
	n    int

	mu       sync.Mutex
	requests map[string][]Request // by account and key: all that the key was used for
	finished []Request            // to be sent again
	left     map[string]bool      // by account and key: whose client went away for good
}

// NewClients makes n clients, whose choices follow from the seed.
func NewClients(wire *Wire, shop *Shop, seed uint64, n int) *Clients {
	return &Clients{wire: wire, shop: shop, seed: seed, n: n, requests: map[string][]Request{}, left: map[string]bool{}}
}

// Run shops until ctx ends, and returns when every client has its last answer.
func (c *Clients) Run(ctx context.Context) {
	var group sync.WaitGroup
	for i := range c.n {
		group.Go(func() {
			one := &client{Clients: c, id: i, random: rand.New(rand.NewPCG(c.seed, uint64(i)))}
			for ctx.Err() == nil {
				one.act(context.WithoutCancel(ctx))
				select {
				case <-time.After(time.Duration(one.random.Int64N(int64(thinkTime)))):
				case <-ctx.Done():
				}
			}
		})
	}
	group.Wait()
}

// Settle sends again whatever nobody knows the end of, until all of it is decided or ctx ends. What a client walked away from is for
// the system to finish; only with everything are those keys asked for, too.
func (c *Clients) Settle(ctx context.Context, everything bool) {
	for {
		undecided := c.undecided(everything)
		if len(undecided) == 0 || ctx.Err() != nil {
			return
		}
		work := make(chan Request)
		var group sync.WaitGroup
		for i := range settlers {
			group.Go(func() {
				random := rand.New(rand.NewPCG(c.seed, uint64(1000+i)))
				for r := range work {
					r.Via = "nginx"
					c.wire.Call(ctx, r, random)
				}
			})
		}
		for _, r := range undecided {
			work <- r
		}
		close(work)
		group.Wait()
	}
}

func (c *Clients) undecided(everything bool) []Request {
	known := map[string]bool{}
	for _, a := range c.wire.Journal.Attempts() {
		if o := a.Outcome(); o == journal.Succeeded || o == journal.Refused {
			known[a.Account+" "+a.Key] = true
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var open []Request
	for id, r := range c.requests {
		if !known[id] && (everything || !c.left[id]) {
			open = append(open, r...)
		}
	}
	slices.SortFunc(open, func(a, b Request) int { return a.Client - b.Client })
	return open
}

// client is one of them. It is not safe for concurrent use; its bursts have random sources of their own.
type client struct {
	*Clients
	id, count int
	random    *rand.Rand
}

// request makes a new logical request and remembers it.
func (c *client) request(account, operation, path string, body any) Request {
	c.count++
	raw, err := json.Marshal(body)
	if err != nil {
		panic(err) // strings and integers
	}
	r := Request{Account: account, Key: fmt.Sprintf("faults-%d-%d", c.id, c.count), Operation: operation, Path: path, Body: raw, Client: c.id}
	c.remember(r)
	return r
}

func (c *client) remember(r Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := r.Account + " " + r.Key
	c.requests[id] = append(c.requests[id], r)
}

// act does one thing that people, and their networks, do.
func (c *client) act(ctx context.Context) {
	account := c.shop.Accounts[0]
	if c.random.IntN(8) == 0 {
		account = c.shop.Accounts[1]
	}
	switch n := c.random.IntN(100); {
	case n < 50:
		c.buy(ctx, account, c.ampleItems())
	case n < 58:
		c.buy(ctx, account, []any{item(scarce, 1+c.random.Int64N(2))})
	case n < 68:
		c.do(ctx, c.request(account, "top-up", "/customers/"+c.customer(account)+"/top-ups", map[string]any{"amount": money(1 + c.random.Int64N(500))}))
	case n < 80:
		c.burst(ctx, c.order(account, c.ampleItems()))
	case n < 86:
		c.reuse(ctx, account)
	case n < 92:
		c.twoAccounts(ctx)
	default:
		c.again(ctx)
	}
}

// do sends a request, and marks some for later.
func (c *client) do(ctx context.Context, r Request) journal.Attempt {
	a := c.wire.Call(ctx, r, c.random)
	if c.random.Float64() < resend {
		c.mu.Lock()
		c.finished = append(c.finished, r)
		c.mu.Unlock()
	}
	return a
}

// buy is an order, its payment, and sometimes some money back.
func (c *client) buy(ctx context.Context, account string, items []any) {
	if placed := c.do(ctx, c.order(account, items)); placed.Resource != "" {
		c.pay(ctx, account, placed.Resource)
	}
}

func (c *client) pay(ctx context.Context, account, order string) {
	payment := c.request(account, "payment", "/orders/"+order+"/payments", map[string]any{"method": c.method()})
	if c.walksAway(ctx, payment) {
		return
	}
	var paid journal.Attempt
	if c.random.IntN(4) == 0 {
		paid = c.burst(ctx, payment)
	} else {
		paid = c.do(ctx, payment)
	}
	if paid.Resource != "" && c.random.IntN(4) == 0 {
		body := map[string]any{}
		if c.random.IntN(2) == 0 {
			body["amount"] = money(1 + c.random.Int64N(200))
		}
		refund := c.request(account, "refund", "/payments/"+paid.Resource+"/refunds", body)
		switch {
		case c.walksAway(ctx, refund):
		case c.random.IntN(4) == 0:
			c.burst(ctx, refund)
		default:
			c.do(ctx, refund)
		}
	}
}

// walksAway has some clients send a request once and never ask again.
func (c *client) walksAway(ctx context.Context, r Request) bool {
	if c.random.Float64() >= neverBack {
		return false
	}
	c.mu.Lock()
	c.left[r.Account+" "+r.Key] = true
	c.mu.Unlock()
	r.Via = door(c.random)
	c.wire.Once(ctx, r, 1)
	return true
}

// method is a wallet, or a card of any temper.
func (c *client) method() map[string]any {
	tokens := []string{"tok_visa", "tok_visa", "tok_visa", "tok_visa", "tok_visa", "tok_visa", "tok_declined", "tok_insufficient_funds",
		"tok_charged_no_answer", "tok_charged_silent", "tok_error_first", "tok_slow_1s"}
	if c.random.IntN(3) == 0 {
		return map[string]any{"type": "wallet"}
	}
	return map[string]any{"type": "card", "token": tokens[c.random.IntN(len(tokens))]}
}

// burst sends one request from 2 to 8 places at once, at both replicas and nginx; each place retries for itself.
func (c *client) burst(ctx context.Context, r Request) journal.Attempt {
	doors := []string{"api-1", "api-2", "nginx"}
	answers := make([]journal.Attempt, 2+c.random.IntN(maxBurst-1))
	var group sync.WaitGroup
	for i := range answers {
		copied, random := r, rand.New(rand.NewPCG(c.random.Uint64(), 0))
		copied.Via = doors[i%len(doors)]
		group.Go(func() { answers[i] = c.wire.Call(ctx, copied, random) })
	}
	group.Wait()
	for _, a := range answers {
		if a.Resource != "" {
			return a
		}
	}
	return answers[0]
}

// reuse sends a request, and at the same time or after it another one with its key.
func (c *client) reuse(ctx context.Context, account string) {
	first := c.order(account, []any{item(ample[0], 1)})
	second := first
	second.Body = c.order(account, []any{item(ample[1], 2)}).Body
	c.forgetLast()
	c.remember(second)
	if c.random.IntN(2) == 0 {
		c.do(ctx, first)
		c.wire.Call(ctx, second, c.random)
		return
	}
	random := rand.New(rand.NewPCG(c.random.Uint64(), 0))
	var group sync.WaitGroup
	group.Go(func() { c.wire.Call(ctx, second, random) })
	c.do(ctx, first)
	group.Wait()
}

// forgetLast takes back a request that was made for its body alone.
func (c *client) forgetLast() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, account := range c.shop.Accounts {
		delete(c.requests, fmt.Sprintf("%s faults-%d-%d", account, c.id, c.count))
	}
}

// twoAccounts use the same key, each for an order of its own.
func (c *client) twoAccounts(ctx context.Context) {
	mine := c.order(c.shop.Accounts[0], c.ampleItems())
	theirs := c.order(c.shop.Accounts[1], c.ampleItems())
	c.forgetLast()
	theirs.Key = mine.Key
	c.remember(theirs)
	c.do(ctx, mine)
	c.do(ctx, theirs)
}

// again sends something that was finished some time ago.
func (c *client) again(ctx context.Context) {
	c.mu.Lock()
	if len(c.finished) == 0 {
		c.mu.Unlock()
		return
	}
	i := c.random.IntN(len(c.finished))
	r := c.finished[i]
	c.finished = slices.Delete(c.finished, i, i+1)
	c.mu.Unlock()
	r.Client, r.Via = c.id, ""
	c.wire.Call(ctx, r, c.random)
}

func (c *client) order(account string, items []any) Request {
	return c.request(account, "order", "/orders", map[string]any{"customer_id": c.customer(account), "items": items})
}

func (c *client) customer(account string) string {
	all := c.shop.Customers[account]
	return all[c.random.IntN(len(all))]
}

func (c *client) ampleItems() []any {
	items := []any{}
	for _, i := range c.random.Perm(len(ample))[:1+c.random.IntN(2)] {
		items = append(items, item(ample[i], 1+c.random.Int64N(3)))
	}
	return items
}

func item(sku string, quantity int64) any { return map[string]any{"sku": sku, "quantity": quantity} }
