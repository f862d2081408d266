package workload

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

const (
	// onSale is the most that a merchant has of a product, and buyers how many want one of them.
	onSale, buyers = 6, 3
	// changed is how often a merchant changes the stock of a product, or somebody a name.
	changed = 3
)

// trade has a merchant change the stock of a new product, one time after the other, while others
// order it and regret it.
func (a *action) trade(ctx context.Context, account string) {
	sku := a.shelf()
	a.wire.Once(ctx, a.stock(account, sku, onSale).keyless(), 1)
	var group sync.WaitGroup
	for i := range buyers {
		order, regrets, random := a.take(account, sku, i), a.chance(givenUp), a.fork()
		group.Go(func() {
			placed := a.call(ctx, order, random)
			if placed.Resource == "" || !regrets {
				return
			}
			cancel := a.cancel(account, placed.Resource)
			cancel.Key += order.Key
			cancel.Change = &journal.Change{Of: sku, Kind: journal.Add, Amount: -order.Change.Amount}
			a.call(ctx, cancel, random)
		})
	}
	for range changed {
		a.wire.Once(ctx, a.stock(account, sku, a.random.Int64N(onSale)).keyless(), 1)
		a.look(ctx, account, sku, randomEndpoint(a.random))
	}
	group.Wait()
}

// rename has several people change the name of a new customer, side by side.
func (a *action) rename(ctx context.Context, account string) {
	customer := a.newCustomer(ctx, account, "")
	if customer == "" {
		return
	}
	var group sync.WaitGroup
	for n := range changed {
		r := a.name(account, customer, n+1).keyless()
		group.Go(func() { a.wire.Once(ctx, r, 1) })
	}
	group.Wait()
}

// shelf is the SKU of a product whose history is checked.
func (a *action) shelf() string { return fmt.Sprintf("faults-shelf-%d-%d", a.id, a.n) }

// stock is a PUT of a product with this stock.
func (a *action) stock(account, sku string, n int64) Request {
	r := a.request(account, "product", "/products/"+sku, map[string]any{"name": sku, "price": dollars(100), "stock": n})
	r.Method, r.Purpose = http.MethodPut, journal.Trade
	r.Change = &journal.Change{Of: sku, Kind: journal.Set, Amount: n}
	return r
}

// take is an order of one unit, or two.
func (a *action) take(account, sku string, buyer int) Request {
	n := 1 + a.random.Int64N(2)
	r := a.order(account, []any{item(sku, n)})
	r.Key += fmt.Sprintf("-%d", buyer)
	r.Purpose, r.Change = journal.Trade, &journal.Change{Of: sku, Kind: journal.Add, Amount: -n}
	return r
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

// at is the request without a key, sent to a replica.
func (r Request) at(replica string) Request {
	r.Key, r.Via = "", replica
	return r
}

// look reads a product, once.
func (a *action) look(ctx context.Context, account, sku, via string) journal.Attempt {
	r := Request{Account: account, Operation: "look", Path: "/products/" + sku, Method: http.MethodGet, Client: a.id, Via: via,
		Purpose: journal.Trade, Change: &journal.Change{Of: sku, Kind: journal.Get}}
	return a.wire.Once(ctx, r, 1)
}
