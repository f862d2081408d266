// Package faulty wraps a store for tests: it records the steps that are taken,
// and makes them fail.
package faulty

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/oncepay/oncepay/idempotency"
)

// Names of the steps.
const (
	Acquire  = "acquire"
	Extend   = "extend"
	Complete = "complete"
	Release  = "release"
	Lookup   = "lookup"
)

// Store wraps another store. Set its functions only while no step runs.
type Store struct {
	idempotency.Store
	Fail func(ctx context.Context, step string) error // an error prevents the step
	Lose func(ctx context.Context, step string) error // an error replaces the reply of a step that was taken

	mu    sync.Mutex
	steps []string
}

// Taken returns the steps so far, in order.
func (s *Store) Taken() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.steps)
}

// Note adds something other than a step to Taken.
func (s *Store) Note(event string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = append(s.steps, event)
}

// Acquire implements [idempotency.Store].
func (s *Store) Acquire(ctx context.Context, r idempotency.Record, lease time.Duration) (existing *idempotency.Record, err error) {
	err = s.take(ctx, Acquire, func() (err error) { existing, err = s.Store.Acquire(ctx, r, lease); return err })
	return existing, err
}

// Extend implements [idempotency.Store].
func (s *Store) Extend(ctx context.Context, r idempotency.Record, lease time.Duration) error {
	return s.take(ctx, Extend, func() error { return s.Store.Extend(ctx, r, lease) })
}

// Complete implements [idempotency.Store].
func (s *Store) Complete(ctx context.Context, r idempotency.Record, ttl time.Duration) error {
	return s.take(ctx, Complete, func() error { return s.Store.Complete(ctx, r, ttl) })
}

// Release implements [idempotency.Store].
func (s *Store) Release(ctx context.Context, r idempotency.Record) error {
	return s.take(ctx, Release, func() error { return s.Store.Release(ctx, r) })
}

// Lookup implements [idempotency.Reader].
func (s *Store) Lookup(ctx context.Context, scope, key string) (found *idempotency.Record, err error) {
	err = s.take(ctx, Lookup, func() (err error) { found, err = idempotency.Lookup(ctx, s.Store, scope, key); return err })
	return found, err
}

func (s *Store) take(ctx context.Context, step string, take func() error) error {
	s.Note(step)
	if s.Fail != nil {
		if err := s.Fail(ctx, step); err != nil {
			return err
		}
	}
	err := take()
	if s.Lose != nil && err == nil {
		err = s.Lose(ctx, step)
	}
	return err
}

// On returns err at one kind of step.
func On(step string, err error) func(context.Context, string) error {
	return func(_ context.Context, taken string) error {
		if taken == step {
			return err
		}
		return nil
	}
}

// Always returns err at every step.
func Always(err error) func(context.Context, string) error {
	return func(context.Context, string) error { return err }
}

// Hang blocks at one kind of step until its context ends.
func Hang(step string) func(context.Context, string) error {
	return func(ctx context.Context, taken string) error {
		if taken != step {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}
}
