package memstore

import (
	"context"
	"fmt"

	"github.com/oncepay/oncepay/idempotency"
)

var _ idempotency.Reader = (*Store)(nil)

// Lookup implements [idempotency.Reader].
func (s *Store) Lookup(_ context.Context, scope, key string) (*idempotency.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.get(idempotency.Record{Scope: scope, Key: key})
	if err != nil {
		return nil, fmt.Errorf("look up: %w", err)
	}
	return found, nil
}
