package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/oncepay/oncepay/internal/wait"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/faults/workload"
)

const (
	// askAgain is how often a probe is repeated: often, so that it measures the service and not its
	// own pauses.
	askAgain = 100 * time.Millisecond
	// probeBudget bounds the wait for a probe whose key is not decided; that is a violation by
	// then.
	probeBudget = 30 * time.Second
)

// probe is a request of the campaign itself, to nginx unless the caller changes that.
func (c *campaign) probe(operation, path string, body any) workload.Request {
	raw, err := json.Marshal(body)
	if err != nil {
		panic(err) // strings and integers
	}
	return workload.Request{Account: accounts[0], Key: fmt.Sprintf("faults-probe-%d", c.probes.Add(1)), Operation: operation,
		Path: path, Body: raw, Client: -1, Via: "nginx", Purpose: journal.Probe}
}

// topUp moves money, which needs a replica, Redis and PostgreSQL.
func (c *campaign) topUp() workload.Request {
	return c.probe("top-up", "/customers/"+c.shop.Customers[accounts[0]][0]+"/top-ups", map[string]any{"amount": map[string]any{"amount": 1, "currency": "USD"}})
}

// insist repeats a probe until it is decided: first at its own endpoint, then at nginx.
func (c *campaign) insist(ctx context.Context, r workload.Request) (a journal.Attempt) {
	ctx, cancel := context.WithTimeout(ctx, probeBudget)
	defer cancel()
	for n := 1; ; n++ {
		if a = c.wire.Once(ctx, r, n); a.Outcome().Decided() || ctx.Err() != nil {
			return a
		}
		r.Via = "nginx"
		_ = wait.Pause(ctx, askAgain)
	}
}
