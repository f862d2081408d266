package idempotency

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// maxTries limits how often take acquires the key. A second time is only needed if the lease
// ended meanwhile, because this process was paused or the store was very slow.
const maxTries = 3

// holder is one owner of a key at the store, or who wants to be: take acquires the key, renew
// renews its lease while the work runs, and end completes or releases its record. wait waits
// for the end of another holder.
type holder struct {
	*keeper
	pending Record
	lease   time.Duration
	repairs bool // an authority decides, so that a damaged record may be replaced

	mayHold  bool       // the store may hold our record
	began    time.Time  // the lease began then or later; zero: unknown
	repaired bool       // a damaged record was replaced
	beat     *heartbeat // nil while nothing is held
}

// take tries to acquire the key, and returns the record that is there instead, if any. After
// nil, nil the key is ours, and about two thirds of its lease remain at least: the work never
// starts after its lease may have ended.
func (h *holder) take(ctx context.Context) (*Record, error) {
	for range maxTries {
		existing, err := h.acquire(ctx)
		if err != nil || existing != nil {
			return existing, err
		}
		if fresh, err := h.confirm(ctx); fresh || err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%w: the lease ended %d times before the work could start", ErrUnavailable, maxTries)
}

// acquire takes one step at the store. It knows when the lease began only if no earlier
// acquire can have been applied: the store does not renew the lease of an owner that holds
// the key already.
func (h *holder) acquire(ctx context.Context) (existing *Record, err error) {
	began := time.Now()
	err = detached(ctx, func(ctx context.Context) (err error) {
		existing, err = h.store.Acquire(ctx, h.pending, h.lease)
		if h.repairs && errors.Is(err, ErrCorrupt) {
			existing, err = h.repair(ctx, err)
		}
		return err
	})
	if err == nil && existing == nil && !h.mayHold {
		h.began = began
	}
	if existing == nil && !errors.Is(err, ErrNotSent) {
		h.mayHold = true
	}
	return existing, err
}

// repair acquires a key whose record is damaged.
func (h *holder) repair(ctx context.Context, damage error) (existing *Record, err error) {
	existing, err = Repair(ctx, h.store, h.pending, h.lease)
	if err != nil {
		return nil, errors.Join(damage, err)
	}
	if existing == nil {
		h.repaired = true
		h.log.WarnContext(ctx, "idempotency: damaged record replaced", "scope", h.pending.Scope, "key", h.pending.Key, "error", damage)
	}
	return existing, nil
}

// confirm reports whether the key is ours for long enough to start the work. If the lease
// began too long ago, or at an unknown time, it is extended first.
func (h *holder) confirm(ctx context.Context) (fresh bool, err error) {
	if h.isFresh() {
		return true, nil
	}
	began := time.Now()
	err = detached(ctx, func(ctx context.Context) error { return h.store.Extend(ctx, h.pending, h.lease) })
	switch {
	case errors.Is(err, ErrLost):
		h.began = time.Time{}
		return false, nil
	case err != nil:
		return false, err
	}
	h.began = began
	return h.isFresh(), nil
}

func (h *holder) isFresh() bool {
	return !h.began.IsZero() && time.Since(h.began) < h.lease/beatFraction
}

// renew keeps the lease from now on until its end. It cancels the work if the lease is lost, or
// may be about to end.
func (h *holder) renew(ctx context.Context, cancel context.CancelCauseFunc) {
	h.beat = startHeartbeat(ctx, h.store, h.pending, h.lease, h.began, cancel)
}

// end takes the last step at the store. If that fails it is repeated in the background while the
// lease lasts: otherwise the key would stay blocked for so long. lost is why the lease was given
// up before, if it was.
func (h *holder) end(ctx context.Context, step func(context.Context) error) (lost, err error) {
	if h.beat == nil {
		h.tidyUp(ctx, step)
		return nil, nil
	}
	lost = h.beat.stop()
	ends := time.Now().Add(h.lease) // at the latest: no heartbeat follows
	err = detached(ctx, step)
	unfinished := errors.Is(err, ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)
	if unfinished && time.Now().Before(ends) {
		h.background.start(ctx, ends, step)
	}
	return lost, err
}

// tidyUp takes a step for a key that could not be acquired. The store may hold our record
// although its answer was lost, but no client has had an answer.
func (h *holder) tidyUp(ctx context.Context, step func(context.Context) error) {
	if h.mayHold {
		h.background.start(ctx, time.Time{}, step)
	}
}

func (h *holder) release(ctx context.Context) error { return h.store.Release(ctx, h.pending) }
