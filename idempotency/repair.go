package idempotency

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Repairer is a [Store] that can replace a damaged record. The middleware asks for it only where
// the policy names an authority: a damaged record may have been anything, also that of an attempt
// that is running.
type Repairer interface {
	// Repair acquires the key as Acquire does, and replaces a damaged record by the pending one.
	// It MUST replace, in one atomic step, exactly the bytes that it has judged: what was written
	// meanwhile is returned as Acquire returns it. It returns ErrCorrupt if it cannot replace
	// what is there, such as a value of another type. It succeeds when the same owner repeats it.
	Repair(ctx context.Context, pending Record, lease time.Duration) (*Record, error)
}

// Repair repairs a record if the store is a [Repairer]; if not, it returns [ErrCorrupt] with
// [errors.ErrUnsupported]. A wrapper implements Repairer by calling it.
func Repair(ctx context.Context, store Store, pending Record, lease time.Duration) (*Record, error) {
	repairer, ok := store.(Repairer)
	if !ok {
		return nil, fmt.Errorf("repair: %w: %w", ErrCorrupt, errors.ErrUnsupported)
	}
	return repairer.Repair(ctx, pending, lease)
}
