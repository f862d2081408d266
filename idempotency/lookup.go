package idempotency

import (
	"context"
	"errors"
	"fmt"
)

// Reader is a [Store] that can be asked for a record without acquiring its key.
type Reader interface {
	// Lookup returns the record, or nil if there is none, and changes nothing.
	Lookup(ctx context.Context, scope, key string) (*Record, error)
}

// Lookup asks a store for a record, within two seconds. It returns nil if there is none. If
// the store is not a [Reader] it returns [ErrUnavailable] with [errors.ErrUnsupported]: there
// may be a record. A wrapper implements Reader by calling it.
func Lookup(ctx context.Context, store Store, scope, key string) (*Record, error) {
	reader, ok := store.(Reader)
	if !ok {
		return nil, fmt.Errorf("look up: %w: %w", ErrUnavailable, errors.ErrUnsupported)
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return reader.Lookup(ctx, scope, key)
}
