package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/faults/workload"
)

const (
	// backWithin is the promise.
	backWithin = 10 * time.Second
	// lookFor bounds the wait for a service that breaks it.
	lookFor = 30 * time.Second
	// lookAgain is how precisely recovery is measured.
	lookAgain = 100 * time.Millisecond
	// slack allows for idle connections and the runtime's own goroutines.
	slackGoroutines, slackConnections = 60, 20
)

// awaitService moves money through every door, which takes the replica, Redis and PostgreSQL, and tells when all had answered.
func (c *campaign) awaitService(ctx context.Context) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	body, _ := json.Marshal(map[string]any{"amount": map[string]any{"amount": 1, "currency": "USD"}})
	for _, door := range []string{"api-1", "api-2", "nginx"} {
		r := workload.Request{Account: accounts[0], Key: fmt.Sprintf("faults-probe-%d-%s", len(c.injuries), door), Operation: "top-up",
			Path: "/customers/" + c.shop.Customers[accounts[0]][0] + "/top-ups", Body: body, Client: -1, Via: door}
		for n := 1; ; n++ {
			if c.wire.Once(ctx, r, n).Outcome() == journal.Succeeded {
				break
			}
			if ctx.Err() != nil {
				r.Via = "nginx" // so that the key has an end; the violation stands
				c.wire.Call(context.WithoutCancel(ctx), r, rand.New(rand.NewPCG(c.cfg.Seed, 1)))
				return c.elapsed()
			}
			wait(ctx, lookAgain)
		}
	}
	return c.elapsed()
}

// usage is what a replica holds.
type usage struct{ goroutines, connections float64 }

// measure reads the replicas' metrics; one that does not answer is missing.
func (c *campaign) measure(ctx context.Context) map[string]usage {
	all := map[string]usage{}
	for name, addr := range c.target.Ops {
		metrics, err := scrape(ctx, "http://"+addr+"/metrics")
		if err == nil {
			all[name] = usage{metrics["go_goroutines"], metrics["postgres_pool_acquired_connections"]}
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
