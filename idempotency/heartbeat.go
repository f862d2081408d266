package idempotency

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Fractions of the lease. With the default of 15 s there is a heartbeat every 5 s, and after a
// failed one the next follows 1.25 s later. If none succeeded for 12.5 s the handler is
// cancelled: it has 1.25 s at least to stop before another attempt can take the key over (the
// last heartbeat may take up to 1.25 s).
const (
	beatFraction   = 3
	retryFraction  = 12
	safetyFraction = 6
)

// heartbeat renews a lease while a handler runs, and cancels the handler if the lease is lost
// or may be about to end. Its goroutine starts with the first renewal: most handlers have
// returned before.
type heartbeat struct {
	store   Store
	pending Record
	lease   time.Duration
	began   time.Time
	ctx     context.Context         // of the handler
	cancel  context.CancelCauseFunc // of the handler
	timer   *time.Timer

	mu      sync.Mutex
	stopped bool
	halt    context.CancelFunc // nil until the goroutine has started
	done    chan struct{}
	lost    error // why the lease was given up; read after done is closed
}

// startHeartbeat renews a lease that began at the given moment or later. That moment is on
// this process's monotonic clock, before the store was asked: the lease does not end earlier
// than we believe.
func startHeartbeat(ctx context.Context, store Store, pending Record, lease time.Duration, began time.Time, cancel context.CancelCauseFunc) *heartbeat {
	h := &heartbeat{store: store, pending: pending, lease: lease, began: began, ctx: ctx, cancel: cancel}
	h.timer = time.AfterFunc(time.Until(began.Add(lease/beatFraction)), h.start)
	return h
}

// start runs in a goroutine of the timer.
func (h *heartbeat) start() {
	h.mu.Lock()
	if h.stopped {
		h.mu.Unlock()
		return
	}
	ctx, halt := context.WithCancel(context.WithoutCancel(h.ctx)) // a handler past its deadline still holds its key
	defer halt()
	h.halt, h.done = halt, make(chan struct{})
	h.mu.Unlock()
	defer close(h.done)
	if h.lost = h.run(ctx); h.lost != nil {
		h.cancel(h.lost)
	}
}

// stop ends the heartbeat, waits until it has ended, and returns why the lease was given up,
// if it was. It may be called again.
func (h *heartbeat) stop() error {
	h.timer.Stop()
	h.mu.Lock()
	h.stopped = true
	halt := h.halt
	h.mu.Unlock()
	if halt != nil {
		halt()
		<-h.done
	}
	return h.lost
}

func (h *heartbeat) run(ctx context.Context) error {
	safeUntil := h.safeUntil(h.began)
	for wait := time.Duration(0); pause(ctx, wait); {
		began := time.Now()
		err := h.beat(ctx, safeUntil)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			safeUntil, wait = h.safeUntil(began), h.lease/beatFraction
		case errors.Is(err, ErrLost):
			return fmt.Errorf("extend lease: %w", err)
		case !time.Now().Before(safeUntil):
			return fmt.Errorf("%w: no heartbeat succeeded in time: %w", ErrUnavailable, err)
		default:
			wait = min(h.lease/retryFraction, time.Until(safeUntil))
		}
	}
	return nil
}

func (h *heartbeat) safeUntil(began time.Time) time.Time {
	return began.Add(h.lease - h.lease/safetyFraction)
}

// beat makes one attempt, however late: after a pause of the whole process only the store
// knows whether the lease is still ours.
func (h *heartbeat) beat(ctx context.Context, safeUntil time.Time) error {
	timeout := min(h.lease/beatFraction, time.Until(safeUntil))
	ctx, cancel := context.WithTimeout(ctx, max(timeout, h.lease/retryFraction))
	defer cancel()
	return h.store.Extend(ctx, h.pending, h.lease)
}

// pause returns after d, or earlier if ctx ends. It reports whether ctx is still valid.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
