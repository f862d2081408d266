package main

import (
	"context"
	"sync"
	"time"

	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/faults/nemesis"
	"github.com/oncepay/oncepay/loadtest/faults/workload"
)

const (
	// decidedWithin is the promise for the keys that a dead replica held, and doorWithin that for the public door.
	decidedWithin = nemesis.Lease + 2*time.Second
	doorWithin    = 5 * time.Second
	// atDoor is how often the public door is tried, and an answer that is late counts as none.
	atDoor, late = 100 * time.Millisecond, time.Second
	// orphansEach payments, which the provider takes two seconds for, are under way for so long when their replica is to die.
	orphansEach, underWay = 4, 400 * time.Millisecond
)

// death is what the end of a replica costs clients that don't pause.
type death struct {
	Door    time.Duration `json:"door"`    // until the last answer at nginx that was none, or late
	Orphans int           `json:"orphans"` // payments that were under way there
	Decided time.Duration `json:"decided"` // until the last of them was answered
}

// deathWatch measures one. A nil watch does nothing.
type deathWatch struct {
	*campaign
	stop  chan struct{}
	group sync.WaitGroup

	mu      sync.Mutex
	died    time.Duration   // since the campaign began
	answers []time.Duration // to the payments that were under way
	death   death
}

// watchDeath puts payments under way at a replica that is to die, if it is to die alone.
func (c *campaign) watchDeath(ctx context.Context, faults []*nemesis.Fault) *deathWatch {
	if len(faults) != 1 || faults[0].Dies == "" {
		return nil
	}
	w := &deathWatch{campaign: c, stop: make(chan struct{})}
	for _, payment := range c.payments(ctx) {
		payment.Via = faults[0].Dies
		w.group.Go(func() { w.follow(ctx, payment) })
	}
	wait(ctx, underWay)
	return w
}

// payments places orders, and gives the requests that pay for them.
func (c *campaign) payments(ctx context.Context) (payments []workload.Request) {
	for range orphansEach {
		placed := c.insist(ctx, c.probe("order", "/orders", map[string]any{"customer_id": c.shop.Customers[accounts[0]][0],
			"items": []any{map[string]any{"sku": "faults-pen", "quantity": 1}}}))
		if placed.Resource != "" {
			payments = append(payments, c.probe("payment", "/orders/"+placed.Resource+"/payments",
				map[string]any{"method": map[string]any{"type": "card", "token": "tok_slow_2s"}}))
		}
	}
	return payments
}

// begin is to be called after the death, with the time that it happened at.
func (w *deathWatch) begin(ctx context.Context, died time.Time) {
	if w == nil {
		return
	}
	w.mu.Lock()
	w.died = died.Sub(w.wire.Began)
	w.mu.Unlock()
	w.group.Go(func() { w.tryDoor(ctx) })
}

// end waits for the last answers, and is nil when nothing was measured.
func (w *deathWatch) end() *death {
	if w == nil {
		return nil
	}
	close(w.stop)
	w.group.Wait()
	for _, answer := range w.answers {
		if took := answer - w.died; took > 0 { // or it was answered before
			w.death.Orphans++
			w.death.Decided = max(w.death.Decided, took)
		}
	}
	return &w.death
}

// follow waits for the answer of a payment.
func (w *deathWatch) follow(ctx context.Context, payment workload.Request) {
	answer := w.insist(ctx, payment)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers = append(w.answers, answer.Return)
}

// tryDoor moves money through nginx until the end of the watch, each time with a new key.
func (w *deathWatch) tryDoor(ctx context.Context) {
	for {
		r := w.topUp()
		answer := w.wire.Once(ctx, r, 1)
		succeeded := answer.Outcome() == journal.Succeeded
		if !succeeded {
			w.group.Go(func() { w.insist(ctx, r) }) // so that its key has an end
		}
		if !succeeded || answer.Return-answer.Invoke > late {
			w.mu.Lock()
			w.death.Door = answer.Return - w.died
			w.mu.Unlock()
		}
		select {
		case <-w.stop:
			return
		case <-time.After(atDoor):
		}
	}
}
