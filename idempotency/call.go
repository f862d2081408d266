package idempotency

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/oncepay/oncepay/idempotency/internal/headers"
)

// call is one request with a key, on its way to an answer: the kept one, or that of its work.
type call struct {
	policy Policy
	claim  *Claim
	holder holder
	check  Check // what the observer gets

	began    time.Time     // when the request arrived
	working  time.Duration // spent in the work
	finished bool          // the record is completed or released
	returned bool          // the work returned, and did not panic
}

// prepare makes the record to acquire the claim's key with.
func (c *call) prepare(k *keeper, claim *Claim) {
	c.claim = claim
	c.holder = holder{keeper: k, lease: c.policy.Lease, repairs: c.policy.hasAuthority(), pending: Record{
		Scope: claim.Scope, Key: claim.Key, Status: StatusInProgress,
		Fingerprint: claim.Fingerprint, Owner: claim.Owner, CreatedAt: time.Now(),
		TraceParent: claim.TraceParent,
	}}
}

// wait waits up to bound for the attempt in progress that take met, see [holder.wait].
func (c *call) wait(ctx context.Context, met *Record, bound time.Duration) (existing *Record, waited bool) {
	began := time.Now()
	existing, waited = c.holder.wait(ctx, met, bound)
	if waited {
		c.check.Waited = time.Since(began)
	}
	return existing, waited
}

// failsOpen reports whether the work runs without the key, which could not be acquired.
func (c *call) failsOpen(ctx context.Context, err error) bool {
	c.check.Err = err
	c.holder.log.WarnContext(ctx, "idempotency: acquire failed", "scope", c.claim.Scope, "key", c.claim.Key, "error", err)
	if c.policy.FailureMode != FailOpen {
		c.holder.tidyUp(ctx, c.holder.release)
		return false
	}
	c.claim.Bypassed = true
	return true
}

// fits reports whether an answer is within the limit, which may have been higher when it was
// stored.
func (c *call) fits(r Response) bool {
	return headers.Size(r.Header)+len(r.Body) <= c.holder.maxResponse
}

// limited returns what is kept of an answer: only its status if it is too large.
func (c *call) limited(r Response) Response {
	if r.BodyOmitted || !c.fits(r) {
		return Response{StatusCode: r.StatusCode, BodyOmitted: true}
	}
	return r
}

// start returns the context of the work, which carries the claim. It ends when the lease is
// lost, or may be about to end. Without the key there is no lease.
func (c *call) start(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if c.claim.Bypassed {
		c.check.Result = cmp.Or(c.check.Result, ResultBypassed)
	} else {
		c.check.Result = ResultAcquired
		c.holder.renew(ctx, cancel)
	}
	return context.WithValue(ctx, claimKey{}, c.claim), cancel
}

// keeps reports whether an answer is kept. Without the lease none is: a paused store may execute
// the acquire and the write minutes later, and then the record would outlive the promise. The
// authority has the answer.
func (c *call) keeps(fate Fate) bool {
	return fate == FateKept && !c.claim.Bypassed && c.keepFor() > 0
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

// finish completes or releases the record, or leaves it in progress. If that fails the client still
// gets the answer, because an authority below may have committed it.
func (c *call) finish(ctx context.Context, fate Fate, response Response) {
	c.finished = true
	step := c.holder.release
	switch {
	case c.keeps(fate):
		done := c.holder.pending
		done.Status, done.Response, done.TraceParent = statusOf(response.StatusCode), response, c.claim.origin()
		step = func(ctx context.Context) error { return c.holder.store.Complete(ctx, done, c.keepFor()) }
	case fate == FateUnknown && !c.claim.Bypassed:
		step = func(ctx context.Context) error {
			return c.holder.store.Extend(ctx, c.holder.pending, c.policy.UnknownFor)
		}
	}
	lost, err := c.holder.end(ctx, step)
	if lost != nil || err != nil {
		c.recordFailure(ctx, lost, err)
	}
}

// recordFailure reports what went wrong with the lease or with the last step.
func (c *call) recordFailure(ctx context.Context, lost, err error) {
	c.check.Err = errors.Join(lost, err)
	c.check.Result = ResultIncomplete
	if lost != nil || errors.Is(err, ErrLost) {
		c.check.Result = ResultLost
	}
	c.holder.log.WarnContext(ctx, "idempotency: record not finished", "scope", c.claim.Scope, "key", c.claim.Key,
		"result", c.check.Result, "error", c.check.Err)
}

// conclude completes the check of a call without work.
func (c *call) conclude(result Result) Check {
	c.check.Result = result
	c.check.Repaired = c.holder.repaired
	c.check.Duration = time.Since(c.began) - c.working - c.check.Waited
	return c.check
}

// concludeWork completes the check of a call whose work has ended.
func (c *call) concludeWork() Check {
	if original := c.claim.original.Load(); original != nil {
		c.check.Original = *original
	}
	if c.claim.replayed.Load() && (c.check.Result == ResultAcquired || c.claim.Bypassed) {
		c.check.Result = ResultReplay
	}
	return c.conclude(c.check.Result)
}
