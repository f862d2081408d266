package main

import (
	"context"
	"sync"
	"time"

	"github.com/oncepay/oncepay/internal/wait"
	"github.com/oncepay/oncepay/loadtest/faults/fault"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/faults/workload"
)

const (
	// decidedWithin is the promise for the keys that a dead replica held, and nginxWithin that for
	// requests to nginx.
	decidedWithin = fault.Lease + 2*time.Second
	nginxWithin   = 5 * time.Second
	// askNginx is how often nginx is asked; a slower answer than late counts as none.
	askNginx, late = 100 * time.Millisecond, time.Second
	// runningPayments have been running for runningFor when their replica is killed. The provider
	// takes a second for them, and again where it had not been asked yet: that is part of the time
	// in which they are decided.
	runningPayments, runningFor, runningToken = 4, 400 * time.Millisecond, "tok_slow_1s"
)

// death is what the end of a replica costs clients that don't pause.
type death struct {
	Nginx   time.Duration `json:"nginx"`   // until the last answer of nginx that was missing, late or a failure
	Keys    int           `json:"keys"`    // payments that were running there
	Decided time.Duration `json:"decided"` // until the last of them was answered
}

// deathWatch measures one. A nil watch does nothing.
type deathWatch struct {
	*campaign
	stop  chan struct{}
	group sync.WaitGroup

	mu      sync.Mutex
	died    time.Duration   // since the campaign began
	answers []time.Duration // to the payments that were running
	death   death
}

// watchDeath starts payments at a replica that is to be killed, if no other fault runs beside.
func (c *campaign) watchDeath(ctx context.Context, runs []*fault.Run) *deathWatch {
	if len(runs) != 1 || runs[0].Dies == "" {
		return nil
	}
	w := &deathWatch{campaign: c, stop: make(chan struct{})}
	for _, payment := range c.payments(ctx) {
		payment.Via = runs[0].Dies
		w.group.Go(func() { w.follow(ctx, payment) })
	}
	_ = wait.Pause(ctx, runningFor)
	return w
}

// payments places orders, and returns the requests that pay for them.
func (c *campaign) payments(ctx context.Context) (payments []workload.Request) {
	slow := map[string]any{"method": map[string]any{"type": "card", "token": runningToken}}
	for range runningPayments {
		placed := c.insist(ctx, c.probe("order", "/orders", map[string]any{
			"customer_id": c.shop.Customers[accounts[0]][0],
			"items":       []any{map[string]any{"sku": "faults-pen", "quantity": 1}},
		}))
		if placed.Resource != "" {
			payments = append(payments, c.probe("payment", "/orders/"+placed.Resource+"/payments", slow))
		}
	}
	return payments
}

// begin is called after the death, with its time.
func (w *deathWatch) begin(ctx context.Context, died time.Time) {
	if w == nil {
		return
	}
	w.mu.Lock()
	w.died = died.Sub(w.wire.Began)
	w.mu.Unlock()
	w.group.Go(func() { w.probeNginx(ctx) })
}

// end waits for the last answers; it returns nil when nothing was measured.
func (w *deathWatch) end() *death {
	if w == nil {
		return nil
	}
	close(w.stop)
	w.group.Wait()
	for _, answer := range w.answers {
		if took := answer - w.died; took > 0 { // or it was answered before
			w.death.Keys++
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

// probeNginx sends top-ups through nginx until the end of the watch, each with a new key.
func (w *deathWatch) probeNginx(ctx context.Context) {
	for {
		r := w.topUp()
		answer := w.wire.Once(ctx, r, 1)
		succeeded := answer.Outcome() == journal.Succeeded
		if !succeeded {
			w.group.Go(func() { w.insist(ctx, r) }) // so that its key is decided
		}
		if !succeeded || answer.Return-answer.Invoke > late {
			w.mu.Lock()
			w.death.Nginx = answer.Return - w.died
			w.mu.Unlock()
		}
		select {
		case <-w.stop:
			return
		case <-time.After(askNginx):
		}
	}
}
