package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

// onOffer is how many units of its product a sale has.
const onOffer = 5

func saleSKU(name string) string { return "faults-sale-" + name }

// OpenSale creates the product of a sale with this name.
func (c *Clients) OpenSale(ctx context.Context, name string) error {
	a := c.shopper(-1).action(0)
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
	var decided atomic.Int64
	var group sync.WaitGroup
	sku, together := saleSKU(name), make(chan struct{})
	for id := range buyers {
		a := &action{shopper: c.shopper(-1), random: rand.New(rand.NewPCG(c.seed, uint64(id)))}
		r := a.order(c.shop.Accounts[0], []any{item(sku, 1)})
		r.Key, r.Via, r.Purpose = fmt.Sprintf("%s-%d", sku, id), endpoints[id%len(endpoints)], journal.Sale
		r.Change = &journal.Change{Of: sku, Kind: journal.Add, Amount: -1}
		group.Go(func() {
			<-together
			if c.call(context.WithoutCancel(ctx), r, a.random).Outcome().Decided() {
				decided.Add(1)
			}
		})
	}
	close(together)
	group.Wait()
	return int(decided.Load())
}
