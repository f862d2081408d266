package workload

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

const (
	// thinkTime, at most, between two things that a client does: enough clients then make a steady load, not a benchmark.
	thinkTime = 250 * time.Millisecond
	// settlers resolve what was left open side by side.
	settlers = 16
)

// Clients are the campaign's. Make them by NewClients and let them Run.
type Clients struct {
	wire *Wire
	shop *Shop
	seed uint64
	n    int
	open open
}

// NewClients makes n clients, whose choices follow from the seed.
func NewClients(wire *Wire, shop *Shop, seed uint64, n int) *Clients {
	return &Clients{wire: wire, shop: shop, seed: seed, n: n}
}

// Run shops until ctx ends, and returns when every client has its last answer.
func (c *Clients) Run(ctx context.Context) {
	var group sync.WaitGroup
	for i := range c.n {
		group.Go(func() { c.shopper(i).shopUntil(ctx) })
	}
	group.Wait()
}

// Settle sends again whatever nobody knows the end of, until all of it is decided or ctx ends. What a client walked away from is for
// the system to finish; only with everything are those keys asked for, too.
func (c *Clients) Settle(ctx context.Context, everything bool) {
	for {
		undecided := c.open.list(everything)
		if len(undecided) == 0 || ctx.Err() != nil {
			return
		}
		work := make(chan Request)
		var group sync.WaitGroup
		for i := range settlers {
			group.Go(func() {
				random := rand.New(rand.NewPCG(c.seed, uint64(i)))
				for r := range work {
					r.Via, r.Purpose = nginx, journal.Settling
					c.call(ctx, r, random)
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

// call sends a request until it is answered, and remembers it for Settle if that does not come about.
func (c *Clients) call(ctx context.Context, r Request, random *rand.Rand) journal.Attempt {
	c.open.add(r, false)
	a := c.wire.Call(ctx, r, random)
	c.open.told(r, a.Outcome())
	return a
}

// abandon sends a request once; its client does not ask again, whatever it is told.
func (c *Clients) abandon(ctx context.Context, r Request) journal.Attempt {
	c.open.add(r, true)
	a := c.wire.Once(ctx, r, 1)
	c.open.told(r, a.Outcome())
	return a
}
