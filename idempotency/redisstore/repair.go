package redisstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oncepay/oncepay/idempotency"
)

var _ idempotency.Repairer = (*Store)(nil)

// Repair implements [idempotency.Repairer] for damaged strings. Values of other types stay: none of
// our records was ever one.
func (s *Store) Repair(ctx context.Context, pending idempotency.Record, lease time.Duration) (*idempotency.Record, error) {
	damaged, free, err := s.setUnlessThere(ctx, pending, lease)
	if err != nil || free {
		return nil, err
	}
	existing, err := s.met(damaged, pending)
	if !errors.Is(err, idempotency.ErrCorrupt) {
		return existing, err
	}
	data, err := s.encode(pending, lease)
	if err != nil {
		return nil, fmt.Errorf("repair: %w", err)
	}
	err = s.run(ctx, "repair", replace, pending, damaged, data, milliseconds(lease))
	if errors.Is(err, idempotency.ErrLost) { // another one was faster, or we ourselves, and the reply was lost
		return s.Acquire(ctx, pending, lease)
	}
	return nil, err
}
