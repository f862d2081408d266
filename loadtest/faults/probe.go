package main

import (
	"context"
	"sync"
	"time"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/internal/wait"
	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/fault"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
	"github.com/oncepay/oncepay/loadtest/faults/workload"
	"github.com/oncepay/oncepay/loadtest/shop"
)

const (
	// askAgain is how often a probe is repeated: often, so that it measures the service and not its
	// own pauses. A slower answer than late counts as none while a replica's death is measured.
	askAgain, late = 100 * time.Millisecond, time.Second
	// probeBudget bounds the wait for a probe whose key is not decided, and for a service that is
	// not back; both are violations by then.
	probeBudget = 30 * time.Second
	// backWithin is the promised time until the service answers again after a fault, and
	// nginxWithin that for requests to nginx after the death of a replica. decidedWithin is the
	// promise for the keys that it held.
	backWithin, nginxWithin = 10 * time.Second, 5 * time.Second
	decidedWithin           = fault.Lease + 2*time.Second
	// runningPayments have been running for runningFor when their replica is killed. The provider
	// takes a second for them, and again where it had not been asked yet: that is part of the time
	// in which they are decided.
	runningPayments, runningFor, runningToken = 4, 400 * time.Millisecond, "tok_slow_1s"
)

// insist repeats a probe until it is decided: first at its own endpoint, then at another.
func (c *campaign) insist(ctx context.Context, r workload.Request, then string) (a journal.Attempt) {
	ctx, cancel := context.WithTimeout(ctx, probeBudget)
	defer cancel()
	for n := 1; ; n++ {
		if a = c.wire.Once(ctx, r, n); a.Outcome().Decided() || ctx.Err() != nil {
			return a
		}
		r.Via = then
		_ = wait.Pause(ctx, askAgain)
	}
}

// awaitService sends a top-up to every endpoint, and returns the time when all had answered.
func (c *campaign) awaitService(ctx context.Context) time.Duration {
	for _, endpoint := range []string{stack.API1, stack.API2, stack.Nginx} {
		r := c.clients.TopUp()
		r.Via = endpoint
		if !c.insist(ctx, r, endpoint).Outcome().Decided() {
			c.insist(context.WithoutCancel(ctx), r, stack.Nginx) // so that its key is decided; the violation stands
		}
	}
	return c.elapsed()
}

// limits are how many of these a replica may hold after the faults, and beside what it held before.
var limits = []struct {
	metric string
	most   float64
	beside bool
}{
	{"go_goroutines", 60, true}, // idle connections, and the runtime's own
	{"postgres_pool_acquired_connections", 20, false},
	{"idempotency_waiters", 0, false},
}

// measure reads the replicas' metrics; one that does not answer is missing.
func (c *campaign) measure(ctx context.Context) map[string]map[string]float64 {
	all := map[string]map[string]float64{}
	for _, name := range stack.Replicas {
		if metrics, err := shop.Metrics(ctx, "http://"+c.stack.Ops(name)); err == nil {
			all[name] = metrics
		}
	}
	return all
}

// leaks compares what the replicas hold with what they held before the faults, after they have
// closed what is idle.
func leaks(baseline, after map[string]map[string]float64) (found []books.Violation) {
	for name, before := range baseline {
		is, answered := after[name]
		for _, limit := range limits {
			most := limit.most
			if limit.beside {
				most += before[limit.metric]
			}
			if !answered || is[limit.metric] > most {
				found = append(found, books.Broken(verify.Resources, "%s: %s is %.0f, and may be %.0f",
					name, limit.metric, is[limit.metric], most))
			}
		}
	}
	return found
}

// death is what the end of a replica costs clients that don't pause.
type death struct {
	Nginx   time.Duration `json:"nginx"`   // until the last answer of nginx that was missing, late or a failure
	Keys    int           `json:"keys"`    // payments that were running there
	Decided time.Duration `json:"decided"` // until the last of them was answered
}

// watchDeath starts payments at a replica that is to be killed, if no other fault runs beside, and
// sends top-ups through nginx, each with a new key, until measured is called. That waits for the
// last answers, and returns nil if nothing was watched.
func (c *campaign) watchDeath(ctx context.Context, runs []*fault.Run) (measured func() *death) {
	run := runs[0]
	if len(runs) != 1 || run.Dies == "" {
		return func() *death { return nil }
	}
	var group sync.WaitGroup
	answers := make([]time.Duration, runningPayments)
	for i := range answers {
		placed := c.insist(ctx, c.clients.Order(), stack.Nginx)
		if placed.Resource == "" {
			continue
		}
		payment := c.clients.Payment(placed.Resource, runningToken)
		payment.Via = run.Dies
		group.Go(func() { answers[i] = c.insist(ctx, payment, stack.Nginx).Return })
	}
	watching, stop := context.WithCancel(ctx)
	failed := time.Duration(0) // the last answer that was missing, late or a failure
	group.Go(func() {
		for pause := error(nil); pause == nil; pause = wait.Pause(watching, askAgain) {
			r := c.clients.TopUp()
			answer := c.wire.Once(ctx, r, 1)
			succeeded := answer.Outcome() == journal.Succeeded
			if !succeeded {
				group.Go(func() { c.insist(ctx, r, stack.Nginx) }) // so that its key is decided
			}
			if !succeeded || answer.Return-answer.Invoke > late {
				failed = answer.Return
			}
		}
	})
	_ = wait.Pause(ctx, runningFor)
	return func() *death {
		stop()
		group.Wait()
		died := run.Died.Sub(c.wire.Began)
		d := &death{Nginx: max(0, failed-died)}
		for _, answer := range answers {
			if took := answer - died; took > 0 { // or it was answered before
				d.Keys++
				d.Decided = max(d.Decided, took)
			}
		}
		return d
	}
}
