// Package memstore keeps idempotency records in the memory of one process: for tests,
// examples, and services that run as a single instance and may forget their keys at a
// restart. Several instances need package redisstore or pgstore.
package memstore

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/internal/watch"
)

// sweepSize is how many records each Acquire checks in order to remove expired ones. It is
// more than one, so that removal is faster than arrival, and small, so that no request is
// delayed.
const sweepSize = 8

// Store is an [idempotency.Store]. It is safe for concurrent use.
type Store struct {
	mu      sync.Mutex
	entries map[id]entry

	watches watch.Registry
}

var (
	_ idempotency.Store   = (*Store)(nil)
	_ idempotency.Watcher = (*Store)(nil)
)

type id struct{ scope, key string }

// entry holds the encoded record: a caller that changes its own copy later does not change
// what is stored.
type entry struct {
	data    []byte
	expires time.Time
}

// New returns an empty store.
func New() *Store {
	s := &Store{entries: map[id]entry{}}
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

// Watch implements [idempotency.Watcher].
func (s *Store) Watch(scope, key string) (changed <-chan struct{}, stop func()) {
	return s.watches.Add(nameOf(scope, key))
}

// nameOf is unique: keys hold no NUL.
func nameOf(scope, key string) string { return scope + "\x00" + key }

func idOf(r idempotency.Record) id { return id{r.Scope, r.Key} }

func holds(existing *idempotency.Record, pending idempotency.Record) bool {
	return existing != nil && existing.Owner == pending.Owner && existing.Status == idempotency.StatusInProgress
}

func (s *Store) get(r idempotency.Record) (*idempotency.Record, error) {
	e, found := s.entries[idOf(r)]
	if !found || !time.Now().Before(e.expires) {
		return nil, nil
	}
	var existing idempotency.Record
	if err := existing.UnmarshalBinary(e.data); err != nil {
		return nil, err
	}
	return &existing, nil
}

func (s *Store) put(r idempotency.Record, lifetime time.Duration) error {
	r.ExpiresAt = time.Now().Add(lifetime)
	data, err := r.MarshalBinary()
	if err != nil {
		return err
	}
	s.entries[idOf(r)] = entry{data, r.ExpiresAt}
	return nil
}

// sweep relies on Go starting the iteration of a map at a random place.
func (s *Store) sweep() {
	now, looked := time.Now(), 0
	for id, e := range s.entries {
		if looked++; looked > sweepSize {
			return
		}
		if !now.Before(e.expires) {
			delete(s.entries, id)
		}
	}
}
