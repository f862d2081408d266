package workload

import (
	"context"
	"sync"
	"time"
)

// steadyClient is the number of the client that Steady's requests come from.
const steadyClient = 1_000_000

// Steady places orders at this rate a second until ctx ends, and pays each second one by card,
// however long answers take. It returns when each request has its last answer. Calls may overlap.
func (c *Clients) Steady(ctx context.Context, rate int) {
	working := context.WithoutCancel(ctx)
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	var group sync.WaitGroup
	defer group.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			n := c.steady.Add(1)
			group.Go(func() { c.shopper(steadyClient).action(int(n)).orderAndPay(working, n%2 == 0) })
		}
	}
}

func (a *action) orderAndPay(ctx context.Context, pay bool) {
	account := a.shop.Accounts[0]
	placed := a.call(ctx, a.order(account, a.ampleItems()), a.fork())
	if placed.Resource != "" && pay {
		a.call(ctx, a.request(account, "payment", "/orders/"+placed.Resource+"/payments", map[string]any{"method": card("tok_visa")}), a.fork())
	}
}
