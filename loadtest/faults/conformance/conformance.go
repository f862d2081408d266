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
)

const (
	// senders send side by side.
	senders = 16
	// answerTimeout is longer than any route may take.
	answerTimeout = 30 * time.Second
	// maxShown bounds how often one kind of violation is reported: those from one endpoint, with
	// one status, that begin with the same sameKind characters.
	maxShown, sameKind = 3, 30
)

// Config says where to send what.
type Config struct {
	Endpoints map[string]string // base URLs by name, without a trailing slash
	APIKey    string
	Customers []string // IDs of customers that exist
	Requests  int
	Seed      uint64
}

// Report is what came of it.
type Report struct {
	Requests   int               `json:"requests"`
	Statuses   map[int]int       `json:"statuses"` // answers by status
	Invalid    int               `json:"invalid"`  // answers that openapi.yaml does not describe
	Violations []books.Violation `json:"-"`
}

// Run sends the requests, evenly to all endpoints. Its error says that it could not.
func Run(ctx context.Context, cfg Config) (Report, error) {
	routes, err := readRoutes()
	if err != nil {
		return Report{}, fmt.Errorf("read openapi.yaml: %w", err)
	}
	report, seen := Report{Statuses: map[int]int{}}, map[string]int{}
	var mu sync.Mutex
	var group sync.WaitGroup
	for sender := range senders {
		group.Go(func() {
			g := generator{routes: routes, cfg: cfg, random: rand.New(rand.NewPCG(cfg.Seed, uint64(sender)))}
			for n := sender; n < cfg.Requests && ctx.Err() == nil; n += senders {
				r := g.request(n)
				status, wrong := g.exchange(ctx, r)
				mu.Lock()
				report.add(r, status, wrong, seen)
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return report, ctx.Err()
}

// add counts an answer; wrong is nil, or what is wrong with it.
func (p *Report) add(r request, status int, wrong error, seen map[string]int) {
	p.Requests++
	p.Statuses[status]++
	if wrong == nil {
		return
	}
	p.Invalid++
	kind := fmt.Sprintf("%s%d%.*s", r.endpoint, status, sameKind, wrong)
	if seen[kind]++; seen[kind] > maxShown {
		return
	}
	p.Violations = append(p.Violations, books.Broken(verify.AnswersConform, "%s: %d to %.200q (%s): %s", r.endpoint, status, r.head, r.change, wrong))
}
