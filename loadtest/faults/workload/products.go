package workload

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/oncepay/oncepay/internal/wait"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/shop"
)

const (
	// onSale is the most that a merchant has of a product, and buyers how many want one or two.
	onSale, buyers = 6, 3
	// changed is how often a merchant changes the stock of a product.
	changed = 3
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
		order, regrets := a.take(account, a.shelf(), 1+a.random.Int64N(2)).numbered(i), a.chance(givenUp)
		group.Go(func() {
			placed := a.call(ctx, order)
			if placed.Resource == "" || !regrets {
				return
			}
			cancel := a.cancel(account, placed.Resource).numbered(i)
			cancel.Purpose, cancel.Change = journal.Trade, adds(a.shelf(), -order.Change.Amount)
			a.call(ctx, cancel)
		})
	}
	for i := range changed {
		a.restock(ctx, account, i)
	}
	group.Wait()
	a.look(ctx, account, nginx)
}

// restock changes the stock in one of the ways that there are: whatever it is, by some units, or if
// it is as it was read.
func (a *action) restock(ctx context.Context, account string, i int) {
	r, keyless := a.put(account, a.shelf(), a.random.Int64N(onSale)).numbered(i), a.chance(0.4)
	switch a.random.IntN(3) {
	case 0:
		by := r.Change.Amount - onSale/2
		change := a.request(account, "restock", a.shelf(), map[string]any{"stock_change": by})
		change.Key, change.Purpose, change.Change = r.Key, r.Purpose, adds(a.shelf(), by)
		r, keyless = change, false
	case 1:
		r.Change.IfMatch = a.look(ctx, account, "").Change.Version
	}
	if keyless {
		a.call(ctx, r.keyless())
		return
	}
	a.do(ctx, r)
}

// rename has several people change the name of a new customer side by side, one of them with a key.
func (a *action) rename(ctx context.Context, account string) {
	customer := a.newCustomer(ctx, account, "")
	if customer == "" {
		return
	}
	name := func(n int) Request { return a.name(account, customer, n) }
	a.together(ctx, name(1), name(2).keyless(), name(3).keyless())
}

// shelf is the SKU of a product whose history is checked.
func (a *action) shelf() string { return fmt.Sprintf("faults-shelf-%d-%d", a.id, a.n) }

// put is a PUT of a product with this stock.
func (a *action) put(account, sku string, stock int64) Request {
	r := a.request(account, "product", sku, map[string]any{"name": sku, "price": shop.Dollars(100), "stock": stock})
	r.Key = fmt.Sprintf("%s-put-%d", sku, stock)
	r.Purpose, r.Change = journal.Trade, &journal.Change{Of: sku, Kind: journal.Set, Amount: stock}
	return r
}

// take is an order of n units.
func (a *action) take(account, sku string, n int64) Request {
	r := a.order(account, item(sku, n))
	r.Purpose, r.Change = journal.Trade, adds(sku, -n)
	return r
}

// adds is a change by so many units. An order takes: it adds less than none.
func adds(sku string, amount int64) *journal.Change {
	return &journal.Change{Of: sku, Kind: journal.Add, Amount: amount}
}

// look reads the product, once.
func (a *action) look(ctx context.Context, account, via string) journal.Attempt {
	r := a.request(account, "look", a.shelf(), nil)
	r.Key, r.Body, r.Via = "", nil, via
	r.Purpose, r.Change = journal.Trade, &journal.Change{Of: a.shelf(), Kind: journal.Get}
	return a.call(ctx, r)
}

// newCustomer is one with the number 0 in its name, or "" if there is no answer.
func (a *action) newCustomer(ctx context.Context, account, via string) string {
	name := fmt.Sprintf("faults-%d-%d-0", a.id, a.n)
	r := a.request(account, "customer", "", map[string]any{"name": name, "email": name + "@example.com"})
	r.Via = via
	return a.call(ctx, r).Resource
}

// name is a PATCH of a customer that puts a number into its name.
func (a *action) name(account, customer string, n int) Request {
	name := fmt.Sprintf("faults-%d-%d-%d", a.id, a.n, n)
	r := a.request(account, journal.Rename, customer, map[string]any{"name": name}).numbered(n)
	r.Purpose, r.Change = journal.Trade, &journal.Change{Of: customer, Kind: journal.Set, Amount: int64(n)}
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
// about to change; answered waits for the last answer.
func (c *Clients) Restock(ctx context.Context, broken string, n int) (answered func()) {
	account, other := c.shop.Accounts[0], otherThan[broken]
	var prepared, changes sync.WaitGroup
	prepared.Add(n)
	for i := range n {
		changes.Go(func() {
			a := c.passer()
			first, second := a.put(account, a.shelf(), oldStock), a.put(account, a.shelf(), newStock)
			if i%4 == 0 {
				customer := a.newCustomer(ctx, account, other)
				first, second = a.name(account, customer, 1), a.name(account, customer, 2)
			}
			first.Via, first.Patience, second.Via, second.Patience = nginx, longer, other, hasty
			if i%4 < 2 {
				first = first.keyless()
			}
			prepared.Done()
			prepared.Wait()
			a.sell(ctx, first, other)
			a.call(ctx, second)
		})
	}
	prepared.Wait()
	return changes.Wait
}

// LeaveChanges has n clients change a product without a key at a replica that is paused, and leave.
// Others change it at the other replica, and look at it when the first change may act no more.
// After the pause only the looks at the connection stop that: its time begins then, and what
// follows it hides the end from net/http. It waits for the last answer.
func (c *Clients) LeaveChanges(ctx context.Context, paused string, n int) {
	account, other := c.shop.Accounts[0], otherThan[paused]
	sideBySide(n, func(int) int {
		a := c.passer()
		first, second := a.put(account, a.shelf(), oldStock).keyless(), a.put(account, a.shelf(), newStock)
		first.Via, first.Patience, first.Pipelined, second.Via = paused, hurried, true, other
		a.call(ctx, first)
		a.call(ctx, second)
		_ = wait.Pause(ctx, longer)
		a.look(ctx, account, other)
		return 0
	})
}

// sell sends a change. While it has no answer, somebody orders a unit of the product at the other
// replica, if it is there already.
func (a *action) sell(ctx context.Context, change Request, other string) {
	order := a.take(change.Account, a.shelf(), 1)
	order.Via = other
	var answered sync.WaitGroup
	defer answered.Wait()
	answered.Go(func() { a.call(ctx, change) })
	_ = wait.Pause(ctx, hurried)
	if change.Operation != journal.Rename {
		a.call(ctx, order)
		a.look(ctx, change.Account, other)
		answered.Wait()
		a.look(ctx, change.Account, other)
	}
}

// OpenSale creates a product with few units that nobody else orders, and returns its SKU.
func (c *Clients) OpenSale(ctx context.Context) (sku string, err error) {
	a := c.passer()
	opens := a.put(c.shop.Accounts[0], a.shelf(), onOffer)
	opens.Patience = hasty
	if answer := a.call(ctx, opens); answer.Outcome() != journal.Succeeded {
		return "", fmt.Errorf("open the sale: %s", answer)
	}
	return a.shelf(), nil
}

// Sell has so many buyers order a unit of a sale's product at once, each with a key of its own. It
// returns how many of them were told whether they got one. Nobody pays.
func (c *Clients) Sell(ctx context.Context, sku string, buyers int) (told int) {
	ctx = context.WithoutCancel(ctx)
	return sideBySide(buyers, func(i int) int {
		r := c.passer().take(c.shop.Accounts[0], sku, 1)
		r.Via, r.Purpose = endpoints[i%len(endpoints)], journal.Sale
		if c.call(ctx, r).Outcome().Decided() {
			return 1
		}
		return 0
	})
}
