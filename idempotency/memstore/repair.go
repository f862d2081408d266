package memstore

import (
	"context"
	"errors"
	"time"

	"github.com/oncepay/oncepay/idempotency"
)

var _ idempotency.Repairer = (*Store)(nil)

// Repair implements [idempotency.Repairer].
func (s *Store) Repair(ctx context.Context, pending idempotency.Record, lease time.Duration) (*idempotency.Record, error) {
	s.mu.Lock()
	if _, err := s.get(pending); errors.Is(err, idempotency.ErrCorrupt) {
		delete(s.entries, idOf(pending))
	}
	s.mu.Unlock()
	return s.Acquire(ctx, pending, lease)
}
