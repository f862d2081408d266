package idempotency

import (
	"context"
	"errors"
	"time"
)

// finalStatus reports whether an answer is kept, and with which status.
func (c *call) finalStatus(code int) (Status, bool) {
	if c.claim.released.Load() || c.keepFor() <= 0 {
		return "", false
	}
	return statusOf(code)
}

// keepFor is how long the answer is kept from now on. The record ends up to one lease before
// the promised time: a delayed write is refused once the lease has ended, so no delay makes
// the record outlive the promise.
func (c *call) keepFor() time.Duration {
	promised := c.policy.TTL
	if limit := c.claim.keepFor.Load(); limit != nil {
		promised = min(promised, *limit)
	}
	return promised - time.Since(c.began) - min(c.policy.Lease, c.policy.TTL/2)
}

// finish completes or releases the record. If that fails the client still gets the handler's
// answer, because an authority below may have committed it, and the step is repeated in the
// background while the lease lasts: otherwise the key would stay blocked for so long.
func (c *call) finish(response Response) {
	c.finished = true
	step := c.release
	if status, final := c.finalStatus(response.StatusCode); final {
		done := c.pending
		done.Status, done.Response, done.TraceParent = status, response, c.claim.origin()
		step = func(ctx context.Context) error { return c.store.Complete(ctx, done, c.keepFor()) }
	}
	if c.beat == nil {
		c.tidyUp(step)
		return
	}
	lost := c.beat.stop()
	leaseEnds := time.Now().Add(c.policy.Lease) // at the latest: no heartbeat follows
	err := detached(c.r.Context(), step)
	unfinished := errors.Is(err, ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)
	if unfinished && time.Now().Before(leaseEnds) {
		c.background.start(c.r.Context(), leaseEnds, step)
	}
	c.recordFailure(lost, err)
}

// recordFailure reports what went wrong with the lease or with the last step.
func (c *call) recordFailure(lost, err error) {
	c.check.Err = errors.Join(lost, err)
	switch {
	case c.check.Err == nil:
		return
	case lost != nil, errors.Is(err, ErrLost):
		c.check.Result = ResultLost
	default:
		c.check.Result = ResultIncomplete
	}
	c.log.WarnContext(c.r.Context(), "idempotency: record not finished", "scope", c.check.Scope, "key", c.check.Key,
		"result", c.check.Result, "error", c.check.Err)
}

func (c *call) reportRun() {
	if original := c.claim.original.Load(); original != nil {
		c.check.Original = *original
	}
	if c.claim.replayed.Load() && (c.check.Result == ResultAcquired || c.check.Result == ResultBypassed) {
		c.check.Result = ResultReplay
	}
	c.report(c.check.Result)
}
