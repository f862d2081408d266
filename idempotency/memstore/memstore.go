// Package memstore keeps idempotency records in the memory of one process, for
// tests, examples and services that run as a single instance and may forget
// their keys in a restart. Behind several instances use package redisstore.
package memstore

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/internal/watch"
)

// sweepSize is how many records each Acquire looks at to remove expired ones.
// More than one, so that removal outpaces arrival; few, so that no request pays
// for all the others.
const sweepSize = 8

// Store is an [idempotency.Store]. It is safe for concurrent use.
type Store struct {
	now func() time.Time

	mu      sync.Mutex
	entries map[id]entry

	watches watch.Registry
}

var (
	_ idempotency.Store    = (*Store)(nil)
	_ idempotency.Notifier = (*Store)(nil)
)

type id struct{ scope, key string }

// entry holds the encoded record: what a caller does with its own copy, later,
// can't change what is stored.
type entry struct {
	data    []byte
	expires time.Time
}

// Option configures a [Store].
type Option func(*Store)

// WithClock replaces time.Now, for tests that let time pass by themselves.
func WithClock(now func() time.Time) Option {
	return func(s *Store) { s.now = now }
}

// New makes an empty store.
func New(opts ...Option) *Store {
	s := &Store{now: time.Now, entries: map[id]entry{}}
	for _, opt := range opts {
		opt(s)
	}
	s.watches.Hear()
	return s
}

// Acquire implements [idempotency.Store].
func (s *Store) Acquire(_ context.Context, pending idempotency.Record, lease time.Duration) (*idempotency.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep()
	existing, err := s.get(pending)
	switch {
	case err != nil:
		return nil, fmt.Errorf("acquire: %w", err)
	case existing == nil:
		return nil, s.put(pending, lease)
	case holds(existing, pending):
		return nil, nil
	}
	return existing, nil
}

// Extend implements [idempotency.Store].
func (s *Store) Extend(_ context.Context, pending idempotency.Record, lease time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	existing, err := s.get(pending)
	if err != nil {
		return fmt.Errorf("extend: %w", err)
	}
	if !holds(existing, pending) {
		return fmt.Errorf("extend: %w", idempotency.ErrLost)
	}
	return s.put(pending, lease)
}

// Complete implements [idempotency.Store].
func (s *Store) Complete(_ context.Context, done idempotency.Record, ttl time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	existing, err := s.get(done)
	switch {
	case err != nil:
		return fmt.Errorf("complete: %w", err)
	case existing == nil || existing.Owner != done.Owner:
		return fmt.Errorf("complete: %w", idempotency.ErrLost)
	case existing.Status != idempotency.StatusInProgress:
		return nil
	}
	defer s.watches.Wake(nameOf(done.Scope, done.Key))
	return s.put(done, ttl)
}

// Release implements [idempotency.Store].
func (s *Store) Release(_ context.Context, pending idempotency.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	existing, err := s.get(pending)
	switch {
	case err != nil:
		return fmt.Errorf("release: %w", err)
	case existing == nil:
		return nil
	case !holds(existing, pending):
		return fmt.Errorf("release: %w", idempotency.ErrLost)
	}
	delete(s.entries, idOf(pending))
	s.watches.Wake(nameOf(pending.Scope, pending.Key))
	return nil
}

// Watch implements [idempotency.Notifier].
func (s *Store) Watch(scope, key string) (changed <-chan struct{}, stop func()) {
	return s.watches.Add(nameOf(scope, key))
}

// nameOf can't be that of another record: keys hold no NUL.
func nameOf(scope, key string) string { return scope + "\x00" + key }

func idOf(r idempotency.Record) id { return id{r.Scope, r.Key} }

func holds(existing *idempotency.Record, pending idempotency.Record) bool {
	return existing != nil && existing.Owner == pending.Owner && existing.Status == idempotency.StatusInProgress
}

func (s *Store) get(r idempotency.Record) (*idempotency.Record, error) {
	e, found := s.entries[idOf(r)]
	if !found || !s.now().Before(e.expires) {
		return nil, nil
	}
	var existing idempotency.Record
	if err := existing.UnmarshalBinary(e.data); err != nil {
		return nil, err
	}
	return &existing, nil
}

func (s *Store) put(r idempotency.Record, lifetime time.Duration) error {
	r.ExpiresAt = s.now().Add(lifetime)
	data, err := r.MarshalBinary()
	if err != nil {
		return err
	}
	s.entries[idOf(r)] = entry{data, r.ExpiresAt}
	return nil
}

// sweep relies on Go beginning the iteration of a map at a random place.
func (s *Store) sweep() {
	now, looked := s.now(), 0
	for id, e := range s.entries {
		if looked++; looked > sweepSize {
			return
		}
		if !now.Before(e.expires) {
			delete(s.entries, id)
		}
	}
}
