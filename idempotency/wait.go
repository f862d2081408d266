package idempotency

import (
	"context"
	"math/rand/v2"
	"time"
)

// A waiter looks soon, because most work is quick and a store may not be able to wake it, and
// then less and less often.
const (
	firstLook = 50 * time.Millisecond
	lastLook  = time.Second
)

// wait waits up to bound for the end of an attempt in progress. It returns what take returned
// then: nil if the key is ours now. It returns the record in progress if the time is up, or ctx
// ended. waited is false if there was no time to wait, or too many others do.
//
// If the store cannot be reached meanwhile, it waits on: all that is known is that another
// attempt was running.
func (h *holder) wait(ctx context.Context, met *Record, bound time.Duration) (existing *Record, waited bool) {
	if bound <= 0 || !h.enter() {
		return met, false
	}
	defer h.leave()
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	changed, stop := Watch(h.store, h.pending.Scope, h.pending.Key)
	defer stop()

	for look := firstLook; awaitChange(ctx, changed, untilLook(look, met)); look = min(2*look, lastLook) {
		existing, err := h.take(ctx)
		switch {
		case err != nil:
		case !existing.isInProgress():
			return existing, true
		default:
			met = existing
		}
	}
	h.tidyUp(ctx, h.release)
	return met, true
}

// untilLook is random, so that waiters do not look together, and ends soon after the lease.
func untilLook(look time.Duration, met *Record) time.Duration {
	until := look/2 + rand.N(look/2)
	if left := time.Until(met.ExpiresAt) + firstLook; left > 0 { // our clock may differ
		until = min(until, left)
	}
	return until
}

// awaitChange returns when it is time to look again. It reports whether ctx is still valid.
func awaitChange(ctx context.Context, changed <-chan struct{}, atMost time.Duration) bool {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-changed:
	case <-timer.C:
	}
	return ctx.Err() == nil
}
