package main

import (
	"bufio"
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/oncepay/oncepay/internal/wait"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
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
		metrics, err := scrape(ctx, "http://"+addr+"/metrics")
		if err == nil {
			all[name] = usage{metrics["go_goroutines"], metrics["postgres_pool_acquired_connections"], metrics["idempotency_waiters"]}
		}
	}
	return all
}

// scrape reads the metrics that have no labels.
func scrape(ctx context.Context, url string) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	values := map[string]float64{}
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		name, value, ok := strings.Cut(lines.Text(), " ")
		if number, err := strconv.ParseFloat(value, 64); ok && err == nil {
			values[name] = number
		}
	}
	return values, nil
}
