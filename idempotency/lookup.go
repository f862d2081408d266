package idempotency

import (
	"context"
	"errors"
	"fmt"
)

// Reader is a [Store] that can be asked for a record without a claim on it.
type Reader interface {
	// Lookup gives the record, or nil when there is none, and changes nothing.
	Lookup(ctx context.Context, scope, key string) (*Record, error)
}

// Lookup asks a store for a record, within the time that each step at a store is
// given. It gives nil when there is no record, and [ErrUnavailable] also when
// the store is no [Reader], together with [errors.ErrUnsupported]: what can't be
// asked for may be there. What decorates a store is a Reader by calling it.
func Lookup(ctx context.Context, store Store, scope, key string) (*Record, error) {
	reader, ok := store.(Reader)
	if !ok {
		return nil, fmt.Errorf("look up: %w: %w", ErrUnavailable, errors.ErrUnsupported)
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return reader.Lookup(ctx, scope, key)
}
