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

// Restock puts n new products side by side, each twice: through nginx, and when that is answered
// through the other replica than the one that is paused. From then on the books expect the second
// stock. It returns how many first answers took longer than the patience, and so came from a second
// copy of nginx's.
func (c *Clients) Restock(ctx context.Context, name, paused string, n int, patience time.Duration) (passedOn int) {
	var mu sync.Mutex
	var group sync.WaitGroup
	account := c.shop.Accounts[0]
	for i := range n {
		group.Go(func() {
			sku, began := fmt.Sprintf("faults-restock-%s-%d", name, i), time.Now()
			if c.putProduct(ctx, nginx, account, sku, oldStock, longer) != nil {
				return
			}
			slow := time.Since(began) > patience
			if c.putProduct(ctx, otherThan(paused), account, sku, newStock, hasty) != nil {
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
	group.Wait()
	return passedOn
}

func otherThan(replica string) string {
	if replica == api1 {
		return api2
	}
	return api1
}
