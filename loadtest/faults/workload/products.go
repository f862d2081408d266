package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncepay/oncepay/internal/wait"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/shop"
)

const (
	// onSale is the most that a merchant has of a product, and buyers how many want one or two.
	onSale, buyers = 6, 3
	// changed is how often a merchant changes the stock of a product, and somebody a name.
	changed = 3
	// lookTwice is how often a merchant reads a product that others keep changing.
	lookTwice = 2
	// onOffer is how many units of its product a sale has.
	onOffer = 5
	// hasty is how long a client waits for one attempt, when nobody is to be kept waiting.
	hasty = time.Second
	// oldStock and newStock are what Restock says, one after the other.
	oldStock, newStock = 11, 22
)

// trade has a merchant change the stock of a new product, one time after the other, while others
// order it and regret it.
func (a *action) trade(ctx context.Context, account string) {
	a.do(ctx, a.put(account, a.shelf(), onSale))
	var group sync.WaitGroup
	for i := range buyers {
		order, regrets, random := a.take(account, i), a.chance(givenUp), a.fork()
		group.Go(func() {
			placed := a.call(ctx, order, random)
			if placed.Resource == "" || !regrets {
				return
			}
			cancel := a.cancel(account, placed.Resource)
			cancel.Key = order.Key + "-cancel"
			cancel.Purpose, cancel.Change = journal.Trade, &journal.Change{Of: a.shelf(), Kind: journal.Add, Amount: -order.Change.Amount}
			a.call(ctx, cancel, random)
		})
	}
	for i := range changed {
		a.restock(ctx, account, i)
	}
	group.Wait()
	a.look(ctx, account, nginx)
}

// restock changes the stock in one of the ways that there are.
func (a *action) restock(ctx context.Context, account string, i int) {
	way, r := a.random.IntN(4), a.put(account, a.shelf(), a.random.Int64N(onSale))
	r.Key += fmt.Sprintf("-%d", i)
	switch way {
	case 0:
		a.call(ctx, r.keyless(), nil)
	case 1:
		relative := a.request(account, "restock", r.Path, map[string]any{"stock_change": r.Change.Amount - onSale/2})
		relative.Key, relative.Method, relative.Purpose = r.Key, http.MethodPatch, r.Purpose
		relative.Change = &journal.Change{Of: a.shelf(), Kind: journal.Add, Amount: r.Change.Amount - onSale/2}
		a.do(ctx, relative)
	case 2:
		a.restockUnchanged(ctx, r)
	default:
		a.do(ctx, r)
	}
}

// restockUnchanged puts a product as it was read, and reads it again if it has changed meanwhile.
// Such a change needs no key.
func (a *action) restockUnchanged(ctx context.Context, r Request) {
	random, put, keyless := a.fork(), *r.Change, a.chance(0.5)
	for try := range lookTwice {
		change := put
		if change.IfMatch = a.look(ctx, r.Account, randomEndpoint(random)).Change.Version; change.IfMatch == 0 {
			return
		}
		again := r
		again.Key, again.Change = fmt.Sprintf("%s-%d", r.Key, try), &change
		if keyless {
			again = again.keyless()
		}
		if a.call(ctx, again, random).Status != http.StatusPreconditionFailed {
			return
		}
	}
}

// rename has several people change the name of a new customer side by side, one of them with a key.
func (a *action) rename(ctx context.Context, account string) {
	customer := a.newCustomer(ctx, account, "")
	if customer == "" {
		return
	}
	var requests []Request
	for n := range changed {
		r := a.name(account, customer, n+1)
		if n > 0 {
			r = r.keyless()
		}
		requests = append(requests, r)
	}
	a.together(ctx, requests...)
}

// shelf is the SKU of a product whose history is checked.
func (a *action) shelf() string { return fmt.Sprintf("faults-shelf-%d-%d", a.id, a.n) }

// put is a PUT of a product with this stock.
func (a *action) put(account, sku string, stock int64) Request {
	r := a.request(account, "product", "/products/"+sku, map[string]any{"name": sku, "price": shop.Dollars(100), "stock": stock})
	r.Key, r.Method = fmt.Sprintf("%s-put-%d", sku, stock), http.MethodPut
	r.Purpose, r.Change = journal.Trade, &journal.Change{Of: sku, Kind: journal.Set, Amount: stock}
	return r
}

// take is an order of one unit, or two.
func (a *action) take(account string, buyer int) Request {
	n := 1 + a.random.Int64N(2)
	r := a.order(account, []any{item(a.shelf(), n)})
	r.Key += fmt.Sprintf("-%d", buyer)
	r.Purpose, r.Change = journal.Trade, &journal.Change{Of: a.shelf(), Kind: journal.Add, Amount: -n}
	return r
}

// look reads the product, once.
func (a *action) look(ctx context.Context, account, via string) journal.Attempt {
	r := Request{Account: account, Operation: "look", Path: "/products/" + a.shelf(), Method: http.MethodGet, Client: a.id, Via: via,
		Purpose: journal.Trade, Change: &journal.Change{Of: a.shelf(), Kind: journal.Get}}
	return a.wire.Once(ctx, r, 1)
}

// newCustomer is one with the number 0 in its name, or "" if there is no answer.
func (a *action) newCustomer(ctx context.Context, account, via string) string {
	name := fmt.Sprintf("faults-%d-%d-0", a.id, a.n)
	r := a.request(account, "customer", "/customers", map[string]any{"name": name, "email": name + "@example.com"})
	r.Via = via
	return a.call(ctx, r, a.fork()).Resource
}

// name is a PATCH of a customer that puts a number into its name.
func (a *action) name(account, customer string, n int) Request {
	r := a.request(account, journal.Rename, "/customers/"+customer, map[string]any{"name": fmt.Sprintf("faults-%d-%d-%d", a.id, a.n, n)})
	r.Method, r.Purpose = http.MethodPatch, journal.Trade
	r.Change = &journal.Change{Of: customer, Kind: journal.Set, Amount: int64(n)}
	return r
}

// keyless is the request without a key, whose client waits for longer than nginx does and does not
// send it again.
func (r Request) keyless() Request {
	r.Key, r.Via, r.Patience = "", nginx, longer
	return r
}

// Restock has n products and customers change side by side through nginx, half of them without a
// key, and again with a key through the other replica than the broken one. It returns when all are
// about to change. PassedOn returns in the end how many answers under a key took longer than the
// patience, and so came from a second copy of nginx's.
func (c *Clients) Restock(ctx context.Context, broken string, n int, patience time.Duration) (passedOn func() int) {
	account, other := c.shop.Accounts[0], otherThan(broken)
	last := int(c.restocks.Add(int64(n)))
	var prepared, answered sync.WaitGroup
	prepared.Add(n)
	var slow atomic.Int64
	for i := range n {
		answered.Go(func() {
			a := c.action(-3, last-i)
			first, second := a.put(account, a.shelf(), oldStock), a.put(account, a.shelf(), newStock)
			if i%4 == 0 {
				customer := a.newCustomer(ctx, account, other)
				first, second = a.name(account, customer, 1), a.name(account, customer, 2)
				second.Key += "-2"
			}
			first.Via, first.Patience, second.Via, second.Patience = nginx, longer, other, hasty
			if i%4 < 2 {
				first = first.keyless()
			}
			prepared.Done()
			prepared.Wait()
			if a.sell(ctx, first, other) > patience && first.Key != "" {
				slow.Add(1)
			}
			a.call(ctx, second, a.fork())
		})
	}
	prepared.Wait()
	return func() int {
		answered.Wait()
		return int(slow.Load())
	}
}

// sell sends a change. While it has no answer, somebody orders a unit of the product at the other
// replica, if it is there already. It returns how long the answer took.
func (a *action) sell(ctx context.Context, change Request, other string) (took time.Duration) {
	order, random := a.take(change.Account, 0), a.fork()
	order.Via = other
	var answered sync.WaitGroup
	answered.Go(func() {
		is := a.call(ctx, change, random)
		took = is.Return - is.Invoke
	})
	_ = wait.Pause(ctx, hurried)
	if change.Operation != journal.Rename {
		a.call(ctx, order, a.fork())
		a.look(ctx, change.Account, other)
		defer a.look(ctx, change.Account, other)
	}
	answered.Wait()
	return took
}

func otherThan(replica string) string {
	if replica == api1 {
		return api2
	}
	return api1
}

func saleSKU(name string) string { return "faults-sale-" + name }

// OpenSale creates the product of a sale with this name.
func (c *Clients) OpenSale(ctx context.Context, name string) error {
	a := c.action(-1, 0)
	r := a.put(c.shop.Accounts[0], saleSKU(name), onOffer)
	r.Via, r.Patience = nginx, hasty
	if answer := a.call(ctx, r, a.fork()); answer.Outcome() != journal.Succeeded {
		return fmt.Errorf("open the sale: %s", answer)
	}
	return nil
}

// Sell has many buyers order a unit of the sale's product at once, each with a key of its own. It
// returns how many of them were told whether they got one. Nobody pays.
func (c *Clients) Sell(ctx context.Context, name string, buyers int) (told int) {
	sku := saleSKU(name)
	return sideBySide(buyers, func(id int) int {
		a := &action{c, -1, 0, rand.New(rand.NewPCG(c.seed, uint64(id)))}
		r := a.order(c.shop.Accounts[0], []any{item(sku, 1)})
		r.Key, r.Via, r.Purpose = fmt.Sprintf("%s-%d", sku, id), endpoints[id%len(endpoints)], journal.Sale
		r.Change = &journal.Change{Of: sku, Kind: journal.Add, Amount: -1}
		if c.call(context.WithoutCancel(ctx), r, a.random).Outcome().Decided() {
			return 1
		}
		return 0
	})
}
