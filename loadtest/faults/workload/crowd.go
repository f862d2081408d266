package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

// Crowd has size more clients order at nginx without a pause until ctx ends, and returns how many
// orders they sent. They leave at once: what is undecided is for Finish. The name keeps the keys of
// several crowds apart.
func (c *Clients) Crowd(ctx context.Context, name string, size int) (sent int) {
	var orders atomic.Int64
	var group sync.WaitGroup
	for id := range size {
		group.Go(func() {
			one := c.shopper(-1)
			for n := 0; ctx.Err() == nil; n++ {
				a := &action{shopper: one, n: n, random: rand.New(rand.NewPCG(c.seed, uint64(id)<<32|uint64(n)))}
				r := a.order(c.shop.Accounts[0], a.ampleItems())
				r.Key = fmt.Sprintf("faults-crowd-%s-%d-%d", name, id, n)
				r.Via, r.Purpose = nginx, journal.Crowd
				c.abandon(context.WithoutCancel(ctx), r)
				orders.Add(1)
			}
		})
	}
	group.Wait()
	return int(orders.Load())
}
