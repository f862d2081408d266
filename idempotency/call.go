package idempotency

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"time"
)

// call is one request's way through the middleware.
type call struct {
	*Middleware
	w      http.ResponseWriter
	r      *http.Request
	policy Policy
	check  Check

	began    time.Time     // of the call, and before the lease begins
	handling time.Duration // spent in the handler

	claim      *Claim
	pending    Record
	leaseBegan time.Time  // at the latest, if the key is ours
	beat       *heartbeat // nil while nothing is held
	out        *capture
	settled    bool // the record is completed or released, nothing is left to do
	finished   bool // the handler returned, and did not panic
}

// prepare makes the claim and the record to acquire the key with.
func (c *call) prepare(body []byte) {
	c.claim = &Claim{
		Scope: c.check.Scope, Key: c.check.Key, Owner: NewOwner(), TTL: c.policy.TTL,
		TraceParent: c.traceParent(c.r.Context()),
		Fingerprint: FingerprintOf(c.r, body, c.policy.ExcludedFields...),
	}
	c.pending = Record{
		Scope: c.claim.Scope, Key: c.claim.Key, Status: StatusInProgress,
		Fingerprint: c.claim.Fingerprint, Owner: c.claim.Owner, CreatedAt: time.Now(),
		TraceParent: c.claim.TraceParent,
	}
}

// acquire asks the store, and goes the way that its answer says.
func (c *call) acquire(next http.Handler) {
	existing, err := c.ask()
	if err == nil && c.inTheWay(existing) {
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

// ask tries to acquire the key, and gives the record that is there instead.
func (c *call) ask() (existing *Record, err error) {
	c.leaseBegan = time.Now()
	err = detached(c.r.Context(), func(ctx context.Context) (err error) {
		existing, err = c.store.Acquire(ctx, c.pending, c.policy.Lease)
		return err
	})
	return existing, err
}

// inTheWay says that the same request is in progress elsewhere.
func (c *call) inTheWay(existing *Record) bool {
	return existing != nil && existing.Status == StatusInProgress && existing.Fingerprint == c.pending.Fingerprint
}

// unavailable fails closed or open, as the route's policy has it.
func (c *call) unavailable(err error, next http.Handler) {
	c.check.Err = err
	c.log.WarnContext(c.r.Context(), "idempotency: acquire failed", "scope", c.check.Scope, "key", c.check.Key, "error", err)
	if c.policy.OnUnavailable == FailOpen {
		c.claim.Bypassed = true
		c.check.Result = ResultBypassed
		c.run(next, false)
		return
	}
	c.tidyUp(c.release)
	c.reject(ResultUnavailable, storeUnavailable(err))
}

// answer speaks for a record that was there before us. The fingerprint comes
// first: another request learns nothing of the state of this one.
func (c *call) answer(existing *Record) {
	c.check.Original = existing.TraceParent
	switch {
	case existing.Fingerprint != c.pending.Fingerprint:
		c.reject(ResultMismatch, KeyReused())
	case existing.Status == StatusInProgress:
		c.reject(ResultConflict, InProgress(c.retryAfter(existing.ExpiresAt)))
	case existing.Response.BodyOmitted:
		maps.Copy(c.w.Header(), headerFilter{"Location": true}.pick(existing.Response.Header))
		c.reject(ResultNotKept, responseNotKept(existing.Response))
	default:
		c.replay(existing.Response)
	}
}

// retryAfter is what remains of the lease, at least a second and at most the
// lease: the clock that wrote expiresAt may be far off ours.
func (c *call) retryAfter(expiresAt time.Time) time.Duration {
	return max(min(time.Until(expiresAt), c.policy.Lease), time.Second)
}

func (c *call) replay(kept Response) {
	c.report(ResultReplay)
	maps.Copy(c.w.Header(), c.headers.pick(kept.Header))
	c.w.Header().Set(HeaderReplay, "true")
	c.w.WriteHeader(kept.StatusCode)
	if len(kept.Body) > 0 {
		_, _ = c.w.Write(kept.Body) // the client may be gone
	}
}

func (c *call) reject(result Result, e *Error) {
	if c.check.Err == nil {
		c.check.Err = e.Err
	}
	c.report(result)
	c.writeError(c.w, c.r, e)
}

// report tells the observer, before the answer goes out.
func (c *call) report(result Result) {
	c.check.Result = result
	c.check.Duration = time.Since(c.began) - c.handling - c.check.Waited
	c.observe(c.r, c.check)
}

// run has the handler answer, under a context that outlives the client's
// connection. held says that we have the key.
func (c *call) run(next http.Handler, held bool) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(c.r.Context()), c.policy.Deadline)
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if held {
		c.beat = startHeartbeat(ctx, c.store, c.pending, c.policy.Lease, c.leaseBegan, cancel)
	}
	c.out = &capture{w: c.w, limit: c.maxResponse, overflow: c.overflow, replayed: c.claim.replayed.Load}
	defer c.abandon()
	c.handle(next, c.r.WithContext(context.WithValue(ctx, claimKey{}, c.claim)))
	c.finish()
}

func (c *call) handle(next http.Handler, r *http.Request) {
	defer func(began time.Time) { c.handling = time.Since(began) }(time.Now())
	next.ServeHTTP(c.out, r)
}

// finish settles the record, and only then sends the answer: whoever has seen
// it finds it again.
func (c *call) finish() {
	c.out.WriteHeader(http.StatusOK) // unless the handler has
	c.finished = true
	if !c.settled {
		c.settle(Response{StatusCode: c.out.code, Header: c.headers.pick(c.out.header), Body: c.out.body})
	}
	c.reportRun()
	if !c.out.streaming {
		_ = c.out.send() // the client may be gone
	}
}

// overflow settles an answer that is to be kept but is too large. One that
// isn't kept still holds the key until the handler returns.
func (c *call) overflow() {
	if _, final := c.outcome(c.out.code); final {
		c.settle(Response{StatusCode: c.out.code, Header: c.headers.pick(c.out.header), BodyOmitted: true})
	}
}

// abandon runs when the handler panicked (or ended its goroutine): the key is
// released, and the panic goes on with its own stack.
func (c *call) abandon() {
	if c.finished {
		return
	}
	if !c.settled {
		c.claim.Release()
		c.settle(Response{})
	}
	c.reportRun()
}

func (c *call) outcome(code int) (Status, bool) {
	if c.claim.released.Load() {
		return "", false
	}
	return kept(code)
}

// settle completes or releases the record. When that fails the client still
// gets the handler's answer, because an authority below may have committed it.
func (c *call) settle(response Response) {
	c.settled = true
	step := c.release
	if status, final := c.outcome(response.StatusCode); final {
		done := c.pending
		done.Status, done.Response, done.TraceParent = status, response, c.claim.origin()
		step = func(ctx context.Context) error { return c.store.Complete(ctx, done, c.policy.TTL) }
	}
	if c.beat == nil {
		c.tidyUp(step)
		return
	}
	lost := c.beat.stop()
	c.settledWith(lost, detached(c.r.Context(), step))
}

// tidyUp is for a key that could not be acquired. The store may hold our record
// although its answer never came, but nothing was promised of it.
func (c *call) tidyUp(step func(context.Context) error) {
	if !errors.Is(c.check.Err, ErrBreakerOpen) { // or else the store wasn't asked
		c.cleanup(c.r.Context(), step)
	}
}

// settledWith notes what went wrong with the lease or at the last step.
func (c *call) settledWith(lost, err error) {
	c.check.Err = errors.Join(lost, err)
	switch {
	case c.check.Err == nil:
		return
	case lost != nil, errors.Is(err, ErrLost):
		c.check.Result = ResultLost
	default:
		c.check.Result = ResultIncomplete
	}
	c.log.WarnContext(c.r.Context(), "idempotency: record not settled", "scope", c.check.Scope, "key", c.check.Key,
		"result", c.check.Result, "error", c.check.Err)
}

func (c *call) release(ctx context.Context) error { return c.store.Release(ctx, c.pending) }

func (c *call) reportRun() {
	if original := c.claim.original.Load(); original != nil {
		c.check.Original = *original
	}
	if c.claim.replayed.Load() && (c.check.Result == ResultAcquired || c.check.Result == ResultBypassed) {
		c.check.Result = ResultReplay
	}
	c.report(c.check.Result)
}
