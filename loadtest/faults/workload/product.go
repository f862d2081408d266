package workload

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncepay/oncepay/internal/wait"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

// hasty is how long a client waits for one attempt, when nobody is to be kept waiting.
const hasty = time.Second

// oldStock and newStock are what Restock says, one after the other.
const oldStock, newStock = 11, 22

// Restock has n products and customers change side by side through nginx, half of them without a
// key, and again with a key through the other replica than the broken one. It calls ready when all
// are about to change, and returns how many answers under a key took longer than the patience, and
// so came from a second copy of nginx's.
func (c *Clients) Restock(ctx context.Context, broken string, n int, patience time.Duration, ready func()) (passedOn int) {
	var slow atomic.Int64
	var group, prepared sync.WaitGroup
	account, other := c.shop.Accounts[0], otherThan(broken)
	prepared.Add(n)
	for i := range n {
		a := c.shopper(-3).action(int(c.restocks.Add(1)))
		group.Go(func() {
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
	ready()
	group.Wait()
	return int(slow.Load())
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
