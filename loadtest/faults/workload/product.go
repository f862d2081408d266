package workload

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/oncepay/oncepay/idempotency/transport"
	"github.com/oncepay/oncepay/internal/wait"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

// hasty is how long a client waits for one attempt, when nobody is to be kept waiting.
const hasty = time.Second

// putProduct creates or replaces a product. It is not in the journal, because it needs no key.
func (c *Clients) putProduct(ctx context.Context, via, account, sku string, stock int64, patience time.Duration) error {
	body, err := json.Marshal(map[string]any{"name": sku, "price": dollars(100), "stock": stock})
	if err != nil {
		panic(err) // strings and integers
	}
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodPut, c.wire.Endpoints[via]+"/v1/products/"+sku, bytes.NewReader(body))
	if err != nil {
		panic(err) // our own address
	}
	q.Header = http.Header{"Authorization": {"Bearer " + account}, "Content-Type": {"application/json"}}
	retrying := &transport.Transport{
		Base: c.wire.pool, MaxElapsed: budget, AttemptTimeout: patience, BaseDelay: firstPause, MaxDelay: firstPause,
	}
	answer, err := retrying.RoundTrip(q)
	if err == nil {
		err = answer.Body.Close()
	}
	if err == nil && answer.StatusCode >= http.StatusMultipleChoices {
		err = fmt.Errorf("the answer is %d", answer.StatusCode)
	}
	if err != nil {
		return fmt.Errorf("put product %s: %w", sku, err)
	}
	return nil
}

// oldStock and newStock are what Restock says, one after the other.
const oldStock, newStock = 11, 22

// Restock has n products and customers change side by side through nginx, half of them without a
// key, and again through the other replica than the broken one. From then on the books expect the
// second stock of a product. It calls ready when all are about to change, and returns how many
// answers under a key took longer than the patience, and so came from a second copy of nginx's.
func (c *Clients) Restock(ctx context.Context, name, broken string, n int, patience time.Duration, ready func()) (passedOn int) {
	var mu sync.Mutex
	var group, prepared sync.WaitGroup
	account, other := c.shop.Accounts[0], otherThan(broken)
	prepared.Add(n)
	for i := range n {
		a := c.shopper(-3).action(int(c.restocks.Add(1)))
		group.Go(func() {
			customer := ""
			if i%4 == 3 {
				customer = a.newCustomer(ctx, account, other)
			}
			prepared.Done()
			prepared.Wait()
			switch {
			case customer != "":
				a.wire.Once(ctx, a.name(account, customer, 1).keyless(), 1)
				a.wire.Once(ctx, a.name(account, customer, 2).at(other), 1)
				return
			case i%4 == 1:
				a.restock(ctx, account, other)
				return
			}
			sku, began := fmt.Sprintf("faults-restock-%s-%d", name, i), time.Now()
			if c.putProduct(ctx, nginx, account, sku, oldStock, longer) != nil {
				return
			}
			slow := time.Since(began) > patience
			if c.putProduct(ctx, other, account, sku, newStock, hasty) != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			c.shop.Opening[account][sku] = newStock
			if slow {
				passedOn++
			}
		})
	}
	prepared.Wait()
	ready()
	group.Wait()
	return passedOn
}

// restock puts a product without a key. While there is no answer, somebody orders one at the other
// replica, if the product is there.
func (a *action) restock(ctx context.Context, account, other string) {
	sku := a.shelf()
	put, order := a.stock(account, sku, oldStock).keyless(), a.take(account, sku, 0)
	order.Via, order.Purpose = other, journal.Refusal
	var answered sync.WaitGroup
	answered.Go(func() { a.wire.Once(ctx, put, 1) })
	_ = wait.Pause(ctx, hurried)
	a.wire.Once(ctx, order, 1)
	a.look(ctx, account, sku, other)
	answered.Wait()
	a.look(ctx, account, sku, other)
	a.wire.Once(ctx, a.stock(account, sku, newStock).at(other), 1)
}

func otherThan(replica string) string {
	if replica == api1 {
		return api2
	}
	return api1
}
