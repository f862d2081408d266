package idempotency

import (
	"context"
	"time"
)

// Store keeps the records. It MUST be safe for concurrent use, and each method
// MUST be one atomic step as seen by all processes that share the store; that
// is all that keeps two requests with the same key apart. The suite in package
// storetest checks an implementation.
//
// A record is identified by its Scope and Key together: ("a:b", "c") and ("a",
// "b:c") are two. A record whose lease or ttl has ended is absent. The store
// sets ExpiresAt of what it writes. Records are the caller's to change once a
// method has returned.
//
// Errors wrap [ErrLost], [ErrUnavailable] or [ErrCorrupt]. After ErrUnavailable
// the step may have been taken or not: a store may therefore repeat it, and
// each step MUST succeed when the same owner takes it again.
type Store interface {
	// Acquire writes the pending record, for the lease, unless there is one.
	// It returns nil, nil when the key is now held by pending.Owner, also when
	// that owner held it before: our own earlier attempt whose reply was lost.
	// Otherwise it changes nothing and returns what is there.
	Acquire(ctx context.Context, pending Record, lease time.Duration) (*Record, error)

	// Extend has the lease begin anew. ErrLost when the record is absent,
	// finished or somebody else's.
	Extend(ctx context.Context, pending Record, lease time.Duration) error

	// Complete replaces this owner's pending record by done, kept for ttl. nil
	// also when this owner had completed it before; ErrLost when the record is
	// absent or somebody else's.
	Complete(ctx context.Context, done Record, ttl time.Duration) error

	// Release removes this owner's pending record. nil also when the record is
	// absent; ErrLost when it is somebody else's or finished.
	Release(ctx context.Context, pending Record) error
}

// Notifier is a [Store] that can wake those who wait for a key (see
// [Policy].Wait). Without it, or when it misses a change, they look again every
// second or so.
type Notifier interface {
	// Watch begins to watch a record, and MUST NOT block. changed receives when
	// the watch has begun, so that what happened before can be looked for, and
	// then whenever the record was completed or released. It may now and then
	// receive without a reason, and should once after changes may have been
	// missed; the end of a lease is no change. stop ends the watch, and may be
	// called again.
	// What decorates a store that is no Notifier gives a nil channel.
	Watch(scope, key string) (changed <-chan struct{}, stop func())
}

// Watch has a store say when to look at a record, if it can; otherwise changed
// is nil. What decorates a store is a [Notifier] by calling it.
func Watch(store Store, scope, key string) (changed <-chan struct{}, stop func()) {
	notifier, ok := store.(Notifier)
	if !ok {
		return nil, func() {}
	}
	return notifier.Watch(scope, key)
}
