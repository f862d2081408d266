package idempotency

import (
	"net/http"
	"time"
)

// call is one request's way through the middleware.
type call struct {
	*Middleware
	w      http.ResponseWriter
	r      *http.Request
	policy Policy
	check  Check // what the observer gets

	began    time.Time     // when the request arrived
	handling time.Duration // spent in the handler

	claim      *Claim
	pending    Record
	mayHold    bool       // the store may hold our record
	leaseBegan time.Time  // the lease began then or later; zero: unknown
	beat       *heartbeat // nil while nothing is held
	out        *capture
	finished   bool // the record is completed or released
	returned   bool // the handler returned, and did not panic
}

// prepare makes the claim and the record to acquire the key with.
func (c *call) prepare(body []byte) {
	c.claim = &Claim{
		Scope: c.check.Scope, Key: c.check.Key, Owner: NewOwner(), TTL: c.policy.TTL,
		TraceParent: c.traceParent(c.r.Context()),
		Fingerprint: c.policy.fingerprint(c.r, body),
	}
	c.pending = Record{
		Scope: c.claim.Scope, Key: c.claim.Key, Status: StatusInProgress,
		Fingerprint: c.claim.Fingerprint, Owner: c.claim.Owner, CreatedAt: time.Now(),
		TraceParent: c.claim.TraceParent,
	}
}

// serve acquires the key and runs the handler, or answers without it.
func (c *call) serve(next http.Handler) {
	existing, err := c.ask()
	if err == nil && isInProgress(existing) {
		existing = c.wait(existing)
	}
	switch {
	case err != nil:
		c.unavailable(err, next)
	case existing == nil:
		c.check.Result = ResultAcquired
		c.run(next, true)
	default:
		c.answer(existing)
	}
}

// isInProgress reports whether a request with the key is in progress elsewhere. It may be another
// request: its handler may yet refuse it and leave the key to this one.
func isInProgress(existing *Record) bool {
	return existing != nil && existing.Status == StatusInProgress
}

// unavailable fails closed or open, as the policy says.
func (c *call) unavailable(err error, next http.Handler) {
	c.check.Err = err
	c.log.WarnContext(c.r.Context(), "idempotency: acquire failed", "scope", c.check.Scope, "key", c.check.Key, "error", err)
	if c.policy.FailureMode == FailOpen {
		c.claim.Bypassed = true
		c.check.Result = ResultBypassed
		c.run(next, false)
		return
	}
	c.tidyUp(c.release)
	c.reject(ResultUnavailable, storeUnavailable(err))
}
