package idempotency

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// maxAsks limits how often ask acquires the key. A second time is only needed if the lease
// ended meanwhile, because this process was paused or the store was very slow.
const maxAsks = 3

// ask tries to acquire the key, and returns the record that is there instead, if any. After
// nil, nil the key is ours, and about two thirds of its lease remain at least: a handler never
// starts after its lease may have ended.
func (c *call) ask() (*Record, error) {
	for range maxAsks {
		existing, err := c.acquire()
		if err != nil || existing != nil {
			return existing, err
		}
		if fresh, err := c.confirm(); fresh || err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%w: the lease ended %d times before the handler could start", ErrUnavailable, maxAsks)
}

// acquire takes one step at the store. It knows when the lease began only if no earlier
// acquire can have been applied: the store does not renew the lease of an owner that holds
// the key already.
func (c *call) acquire() (existing *Record, err error) {
	began := time.Now()
	err = detached(c.r.Context(), func(ctx context.Context) (err error) {
		existing, err = c.store.Acquire(ctx, c.pending, c.policy.Lease)
		if errors.Is(err, ErrCorrupt) {
			existing, err = c.repair(ctx, err)
		}
		return err
	})
	if err == nil && existing == nil && !c.mayHold {
		c.leaseBegan = began
	}
	if existing == nil && !errors.Is(err, ErrNotSent) {
		c.mayHold = true
	}
	return existing, err
}

// confirm reports whether the key is ours for long enough to start the handler. If the lease
// began too long ago, or at an unknown time, it is extended first.
func (c *call) confirm() (fresh bool, err error) {
	if c.isFresh() {
		return true, nil
	}
	began := time.Now()
	err = detached(c.r.Context(), func(ctx context.Context) error {
		return c.store.Extend(ctx, c.pending, c.policy.Lease)
	})
	switch {
	case errors.Is(err, ErrLost):
		c.leaseBegan = time.Time{}
		return false, nil
	case err != nil:
		return false, err
	}
	c.leaseBegan = began
	return c.isFresh(), nil
}

func (c *call) isFresh() bool {
	return !c.leaseBegan.IsZero() && time.Since(c.leaseBegan) < c.policy.Lease/beatFraction
}

// tidyUp takes a step for a key that could not be acquired. The store may hold our record
// although its answer was lost, but no client has had an answer.
func (c *call) tidyUp(step func(context.Context) error) {
	if c.mayHold {
		c.background.start(c.r.Context(), time.Time{}, step)
	}
}

func (c *call) release(ctx context.Context) error { return c.store.Release(ctx, c.pending) }
