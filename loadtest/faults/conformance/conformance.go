// Package conformance sends requests that are generated from openapi.yaml, valid, nearly valid and
// garbage, and checks that every answer is one that openapi.yaml describes: no request may be
// answered in another shape, by nginx or by a replica.
package conformance

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
	"github.com/oncepay/oncepay/loadtest/shop"
)

// answerTimeout is longer than any route may take.
const answerTimeout = 30 * time.Second

// Config says where to send what.
type Config struct {
	Endpoints map[string]string // base URLs by name, without a trailing slash
	APIKey    string
	Customers []string // IDs of customers that exist
	Requests  int
	Seed      uint64
}

// Run sends the requests, evenly to all endpoints. Its error says that it could not.
func Run(ctx context.Context, cfg Config) (found []books.Violation, err error) {
	routes, err := readRoutes()
	if err != nil {
		return nil, fmt.Errorf("read openapi.yaml: %w", err)
	}
	var mu sync.Mutex
	err = shop.Each(ctx, cfg.Requests, func(ctx context.Context, n int) error {
		g := generator{routes: routes, cfg: cfg, number: n, random: rand.New(rand.NewPCG(cfg.Seed, uint64(n)))}
		r := g.request()
		if status, wrong := g.exchange(ctx, r); wrong != nil {
			mu.Lock()
			defer mu.Unlock()
			found = append(found, books.Broken(verify.AnswersConform, "%s: %d to %.200q %.80q: %s",
				r.endpoint, status, r.head, r.body, wrong))
		}
		return ctx.Err()
	})
	return found, err
}
