package workload

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

const (
	// thinkTime is the longest pause between two actions of a client: this makes a steady load, not
	// a benchmark.
	thinkTime = 250 * time.Millisecond
	// finishers resolve what was left open side by side.
	finishers = 16
)

// Clients are the campaign's. Make them by NewClients and let them Run.
type Clients struct {
	wire *Wire
	shop *Shop
	seed uint64
	n    int
	open open

	refusals atomic.Int64 // of RefuseDuring so far
	restocks atomic.Int64 // of Restock
	steady   atomic.Int64 // orders of Steady
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

// Finish retries the requests that are not decided, until all are or ctx ends. What a client left
// is for the system to finish; only with everything are those keys retried, too.
func (c *Clients) Finish(ctx context.Context, everything bool) {
	for {
		undecided := c.open.list(everything)
		if len(undecided) == 0 || ctx.Err() != nil {
			return
		}
		work := make(chan Request)
		var group sync.WaitGroup
		for i := range finishers {
			group.Go(func() {
				random := rand.New(rand.NewPCG(c.seed, uint64(i)))
				for r := range work {
					r.Via, r.Purpose = nginx, journal.Finishing
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

// call sends a request until it is answered, and keeps it for Finish if it is not. One without a
// key is sent once.
func (c *Clients) call(ctx context.Context, r Request, random *rand.Rand) journal.Attempt {
	if r.Key == "" {
		return c.wire.Once(ctx, r, 1)
	}
	c.open.add(r, false)
	a := c.wire.Call(ctx, r, random)
	c.open.answered(r, a.Outcome())
	return a
}

// abandon sends a request once; its client does not retry, whatever the answer.
func (c *Clients) abandon(ctx context.Context, r Request) journal.Outcome {
	c.open.add(r, true)
	a := c.wire.Once(ctx, r, 1)
	c.open.answered(r, a.Outcome())
	return a.Outcome()
}
