package workload

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/oncepay/oncepay/internal/wait"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

const (
	// corrected is the share of refused requests that are corrected and sent again with their key.
	corrected = 0.25
	// longer is more than nginx waits for a replica before it passes a request on to the other one.
	longer = 25 * time.Second
	// hurried is when the client of a first copy breaks its connection.
	hurried = 300 * time.Millisecond
	// ahead is how far the clock of some proxies is ahead of the replicas'.
	ahead = 2 * time.Second
)

// refuse orders a product that does not exist yet, twice, so that the order is refused. Then the
// product appears, and its client leaves or corrects the order: no older copy of it may act now.
func (a *action) refuse(ctx context.Context, account string) {
	a.refuseAfter(ctx, account, endpoints[a.random.IntN(len(endpoints))], nginx, time.Time{})
}

// refuseAfter sends the older copy to one endpoint and the order that is refused to another. Older
// copies wait at a replica that is paused: one whose client hung up, or one that nginx waits for,
// or another proxy, which says of both copies when it read the request.
func (a *action) refuseAfter(ctx context.Context, account, first, second string, start time.Time) {
	sku := a.laterSKU()
	r := a.order(account, item(sku, 1))
	r.Purpose, r.Patience, r.Via, r.Start, r.Change = journal.Refusal, longer, second, start, adds(sku, -1)
	corrects := a.chance(corrected) && start.IsZero()
	older := a.sendOlder(ctx, r, first)
	answer := a.wire.Call(ctx, r)
	r.Start = time.Time{}
	appears := a.put(account, sku, ampleStock)
	appears.Via, appears.Patience = nginx, hasty
	a.call(ctx, appears) // without the product no copy can act
	switch {
	case corrects:
		a.do(ctx, a.order(account, a.ampleItems()...)) // 409 while an older copy holds the key
	case !answer.RefusedForNow():
		a.do(ctx, r) // it was not refused: it goes on
	}
	older.Wait()
}

// sendOlder sends a first copy. At a replica its client breaks the connection, and every second one
// had pipelined another request; a proxy goes on waiting.
func (a *action) sendOlder(ctx context.Context, r Request, via string) *sync.WaitGroup {
	older := new(sync.WaitGroup)
	r.Via = via
	if via != nginx && r.Start.IsZero() {
		r.Patience, r.Pipelined = hurried, a.chance(0.5)
		a.wire.Once(ctx, r, 1)
		return older
	}
	older.Go(func() { a.wire.Once(ctx, r, 1) })
	_ = wait.Pause(ctx, hurried)
	return older
}

// laterSKU is a product that does not exist yet.
func (a *action) laterSKU() string { return fmt.Sprintf("faults-later-%d-%d", a.id, a.n) }

// RefuseDuring has n clients whose older copies wait at a replica that is paused, or at nginx,
// while the other replica refuses. It returns when all of them have their last answer.
func (c *Clients) RefuseDuring(ctx context.Context, paused string, n int) {
	sideBySide(n, func(i int) int {
		start := time.Time{}
		if i%4 == 2 {
			start = time.Now().Add(ahead)
		}
		c.passer().refuseAfter(ctx, c.shop.Accounts[0], []string{paused, nginx}[i%2], otherThan[paused], start)
		return 0
	})
}
