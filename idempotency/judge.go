package idempotency

import "time"

// judge returns how the record that is there answers the call: ResultReplay, or a refusal. While
// it is in progress, another request gets the same 409: a 422 is final, so it needs a kept answer.
func (c *call) judge(existing *Record) (Result, *Error) {
	c.check.Original = existing.TraceParent
	switch {
	case existing.isInProgress():
		return ResultConflict, InProgress(RetryAfter(existing.CreatedAt, c.leaseLeft(existing)))
	case existing.Fingerprint != c.claim.Fingerprint:
		return ResultMismatch, KeyReused()
	case existing.Response.BodyOmitted, !c.fits(existing.Response):
		return ResultNotKept, responseNotKept(existing.Response)
	}
	return ResultReplay, nil
}

// leaseLeft is when the key is free if its holder has died meanwhile: nobody should ask later
// than that. The clock that wrote the record may differ from ours.
func (c *call) leaseLeft(pending *Record) time.Duration {
	return min(time.Until(pending.ExpiresAt), c.policy.Lease)
}
