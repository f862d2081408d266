package idempotency

import (
	"maps"
	"net/http"
	"time"

	"github.com/oncepay/oncepay/idempotency/internal/headers"
)

// answer replies from a record that was there before. While it is in progress, another request
// gets the same 409: a 422 is final, so it needs a kept answer.
func (c *call) answer(existing *Record) {
	c.check.Original = existing.TraceParent
	switch {
	case isInProgress(existing):
		c.reject(ResultConflict, InProgress(RetryAfter(existing.CreatedAt, c.leaseLeft(existing))))
	case existing.Fingerprint != c.pending.Fingerprint:
		c.reject(ResultMismatch, KeyReused())
	case existing.Response.BodyOmitted, !c.servable(existing.Response.Header, existing.Response.Body):
		if location := onlyLocation.pick(existing.Response.Header); c.servable(location, nil) {
			maps.Copy(c.w.Header(), location)
		}
		c.reject(ResultNotKept, responseNotKept(existing.Response))
	default:
		c.replay(existing.Response)
	}
}

// leaseLeft is when the key is free if its holder has died meanwhile: nobody should ask later
// than that. The clock that wrote the record may differ from ours.
func (c *call) leaseLeft(pending *Record) time.Duration {
	return min(time.Until(pending.ExpiresAt), c.policy.Lease)
}

// servable reports whether a stored answer is within the limit, which may have been higher
// when it was stored.
func (c *call) servable(header http.Header, body []byte) bool {
	return headers.Size(header)+len(body) <= c.maxResponse
}

func (c *call) replay(kept Response) {
	c.report(ResultReplay)
	maps.Copy(c.w.Header(), c.headers.pick(kept.Header))
	c.w.Header().Set(HeaderReplay, "true")
	declareLength(c.w.Header(), kept.Body)
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

// report calls the observer, before the answer is sent unless that was streamed.
func (c *call) report(result Result) {
	c.check.Result = result
	c.check.Duration = time.Since(c.began) - c.handling - c.check.Waited
	c.observe(c.r, c.check)
}
