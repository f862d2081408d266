package main

import (
	"context"
	"time"

	"github.com/oncepay/oncepay/internal/wait"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/shop"
)

const (
	// backWithin is the promised time until the service answers again.
	backWithin = 10 * time.Second
	// lookFor bounds the wait for a service that breaks it.
	lookFor = 30 * time.Second
	// slack allows for idle connections and the runtime's own goroutines.
	slackGoroutines, slackConnections = 60, 20
)

// awaitService sends a top-up to every endpoint, and returns the time when all had answered.
func (c *campaign) awaitService(ctx context.Context) time.Duration {
	looking, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	for _, endpoint := range []string{"api-1", "api-2", "nginx"} {
		r := c.topUp()
		r.Via = endpoint
		for n := 1; c.wire.Once(looking, r, n).Outcome() != journal.Succeeded; n++ {
			if looking.Err() != nil {
				c.insist(context.WithoutCancel(ctx), r) // so that its key is decided; the violation stands
				return c.elapsed()
			}
			_ = wait.Pause(looking, askAgain)
		}
	}
	return c.elapsed()
}

// usage is what a replica holds.
type usage struct{ goroutines, connections, waiters float64 }

// measure reads the replicas' metrics; one that does not answer is missing.
func (c *campaign) measure(ctx context.Context) map[string]usage {
	all := map[string]usage{}
	for name, addr := range c.target.Ops {
		metrics, err := shop.Metrics(ctx, "http://"+addr)
		if err == nil {
			all[name] = usage{metrics["go_goroutines"], metrics["postgres_pool_acquired_connections"], metrics["idempotency_waiters"]}
		}
	}
	return all
}
