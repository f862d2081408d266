package idempotency

import (
	"context"
	"net/http"
	"time"
)

// run has the handler answer, in a context that outlives the client's connection. held says
// that we hold the key.
func (c *call) run(next http.Handler, held bool) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(c.r.Context()), c.policy.Deadline)
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if held {
		c.beat = startHeartbeat(ctx, c.store, c.pending, c.policy.Lease, c.leaseBegan, cancel)
	}
	c.out = &capture{
		w: c.w, keep: c.headers, limit: c.maxResponse, overflow: c.overflow, replayed: c.claim.replayed.Load,
	}
	defer c.abandon()
	c.handle(next, c.r.WithContext(context.WithValue(ctx, claimKey{}, c.claim)))
	c.respond(ctx)
}

func (c *call) handle(next http.Handler, r *http.Request) {
	defer func(began time.Time) { c.handling = time.Since(began) }(time.Now())
	next.ServeHTTP(c.out, r)
}

// respond finishes the record, and only then sends the answer: a client that has seen it gets
// it again. A handler that has written nothing when its context ended has no answer, and not an
// empty 200. Nor has one that wrote another number of bytes than it had declared.
func (c *call) respond(ctx context.Context) {
	if c.out.code == 0 && ctx.Err() != nil {
		c.claim.Release()
		c.writeError(c.out, c.r, noAnswer(context.Cause(ctx)))
	}
	c.out.WriteHeader(http.StatusOK) // unless the handler has
	if !c.out.isWhole(c.r.Method) {
		panic(http.ErrAbortHandler) // as net/http breaks the connection off; the key is released
	}
	c.returned = true
	if !c.finished {
		c.finish(c.out.response())
	}
	c.reportRun()
	if !c.out.streaming {
		_ = c.out.send() // the client may be gone
	}
}

// overflow finishes the record of an answer that is final but too large. One that is not
// final still holds the key until the handler returns.
func (c *call) overflow() {
	if _, final := c.finalStatus(c.out.code); final {
		c.finish(c.out.withoutBody())
	}
}

// abandon runs when the handler panicked, or ended its goroutine: the key is released, and the
// panic goes on with its own stack.
func (c *call) abandon() {
	if c.returned {
		return
	}
	if !c.finished {
		c.claim.Release()
		c.finish(Response{})
	}
	c.reportRun()
}
