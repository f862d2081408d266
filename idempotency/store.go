package idempotency

import (
	"context"
	"time"
)

// storeTimeout limits each step at the store, including its repetition, for stores without
// timeouts of their own: a client waits for it.
const storeTimeout = 2 * time.Second

// Store keeps the records. It MUST be safe for concurrent use, and each method MUST be one
// atomic step for all processes that share the store: nothing else separates two requests
// with the same key. The suite in package storetest checks an implementation.
//
// A record is identified by its Scope and Key together: ("a:b", "c") and ("a", "b:c") are two
// records. A record whose lease or ttl has ended is absent. The store sets ExpiresAt of the
// records that it writes. The caller may change a record once a method has returned.
//
// Errors wrap [ErrLost], [ErrUnavailable] or [ErrCorrupt]. After ErrUnavailable the step may
// have been taken or not: a store may therefore repeat it, and each step MUST succeed when
// the same owner takes it again.
type Store interface {
	// Acquire writes the pending record, for the lease, unless there is one. It returns
	// nil, nil if the key is now held by pending.Owner, also if that owner held it before:
	// the reply to an earlier Acquire was lost. It does not renew the lease then. Otherwise
	// it changes nothing and returns the record that is there.
	Acquire(ctx context.Context, pending Record, lease time.Duration) (*Record, error)

	// Extend makes the lease begin anew. It returns ErrLost if the record is absent, finished
	// or another owner's.
	Extend(ctx context.Context, pending Record, lease time.Duration) error

	// Complete replaces this owner's pending record by done, kept for ttl. It returns nil also
	// if this owner completed it before, and ErrLost if the record is absent or another
	// owner's.
	Complete(ctx context.Context, done Record, ttl time.Duration) error

	// Release removes this owner's pending record. It returns nil also if the record is
	// absent, and ErrLost if it is another owner's or finished.
	Release(ctx context.Context, pending Record) error
}

// Watcher is a [Store] that can wake requests that wait for a key (see
// [Policy].Wait). Without it, or when it misses a change, they look again about
// once a second.
type Watcher interface {
	// Watch begins to watch a record, and MUST NOT block. changed receives when the watch has
	// begun, so that the caller can look for earlier changes, and then whenever the record
	// was completed or released. It may also receive without a reason, and should receive
	// once after changes may have been missed. The end of a lease is no change. stop ends
	// the watch, and may be called again.
	// Wrappers return a nil channel if the wrapped store is not a Watcher.
	Watch(scope, key string) (changed <-chan struct{}, stop func())
}

// Watch watches a record if the store is a [Watcher]; if not, changed is nil. A
// wrapper implements Watcher by calling it.
func Watch(store Store, scope, key string) (changed <-chan struct{}, stop func()) {
	watcher, ok := store.(Watcher)
	if !ok {
		return nil, func() {}
	}
	return watcher.Watch(scope, key)
}

// detached takes one step at the store, even if the client is gone.
func detached(ctx context.Context, step func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	return step(ctx)
}
