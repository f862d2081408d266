package idempotency_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/internal/faulty"
	"github.com/oncepay/oncepay/idempotency/memstore"
)

// workshop has keys on a store in memory, and does the same work under each of them.
type workshop struct {
	*idempotency.Keys
	store *faulty.Store
	work  func(context.Context) (string, error)

	mu     sync.Mutex
	runs   int
	checks []idempotency.Check
}

func setupWork(t *testing.T, policy idempotency.Policy, work func(context.Context) (string, error)) *workshop {
	t.Helper()
	return setupWorkOn(t, func(s *faulty.Store) idempotency.Store { return s }, policy, work)
}

// setupWorkOn has Do see the store as wrapped.
func setupWorkOn(t *testing.T, wrap func(*faulty.Store) idempotency.Store, policy idempotency.Policy, work func(context.Context) (string, error)) *workshop {
	t.Helper()
	s := &workshop{store: &faulty.Store{Store: memstore.New()}, work: work}
	s.Keys = &idempotency.Keys{
		Store: wrap(s.store), Scope: "jobs", Policy: policy, Log: slog.New(slog.DiscardHandler),
		Observe: func(_ context.Context, c idempotency.Check) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.checks = append(s.checks, c)
		},
	}
	t.Cleanup(s.Wait)
	return s
}

// do does the work under a key, with the key as the request.
func (s *workshop) do(ctx context.Context, key string) (string, error) {
	return s.request(ctx, key, key)
}

func (s *workshop) request(ctx context.Context, key string, request any) (string, error) {
	return idempotency.Do(ctx, s.Keys, key, request, func(ctx context.Context) (string, error) {
		s.mu.Lock()
		s.runs++
		s.mu.Unlock()
		return s.work(ctx)
	})
}

func (s *workshop) ran() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs
}

func (s *workshop) results() []idempotency.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	results := make([]idempotency.Result, 0, len(s.checks))
	for _, check := range s.checks {
		results = append(results, check.Result)
	}
	return results
}

func (s *workshop) lastCheck() idempotency.Check {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.checks)[len(s.checks)-1]
}
