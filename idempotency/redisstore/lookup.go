package redisstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/oncepay/oncepay/idempotency"
)

var _ idempotency.Reader = (*Store)(nil)

// Lookup implements [idempotency.Reader].
func (s *Store) Lookup(ctx context.Context, scope, key string) (*idempotency.Record, error) {
	raw, err := s.text(ctx, "get", s.keyOf(scope, key))
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look up: %w", translate(err))
	}
	found, err := s.decode(scope, key, raw)
	if err != nil {
		return nil, fmt.Errorf("look up: %w", err)
	}
	return &found, nil
}
