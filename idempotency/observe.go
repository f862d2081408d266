package idempotency

import "time"

// Result is how a check ended. The values are few and fixed, so that they fit the label of a
// metric.
type Result string

// The results. Each request with a key, or without a required one, has one.
const (
	ResultAcquired    Result = "acquired"    // the handler ran
	ResultReplay      Result = "replay"      // answered from the store, or by the authority
	ResultConflict    Result = "conflict"    // 409, another attempt is in progress, of this or another request
	ResultMismatch    Result = "mismatch"    // 422, another request's answer is kept under the key
	ResultDenied      Result = "denied"      // the hook refused the replay, see [WithReplayHook]
	ResultMissing     Result = "missing"     // 400, no key where one is required
	ResultMalformed   Result = "malformed"   // 400, the key is malformed or too long
	ResultRejected    Result = "rejected"    // 413, 400 or 500, the body could not be read; 401, the scope is empty; or see [Middleware.Reject]
	ResultUnavailable Result = "unavailable" // 503, failed closed
	ResultBypassed    Result = "bypassed"    // the handler ran without the store, failed open
	ResultNotKept     Result = "not_kept"    // 409, the first answer was too large to keep, or has an encoding that is not accepted
	ResultLost        Result = "lost"        // the handler ran, but its lease was lost meanwhile
	ResultIncomplete  Result = "incomplete"  // the handler ran, but its record could not be finished at once
)

// Check is what an observer gets, once for each request; see [WithObserver] and [Keys].Observe.
// What is said of handlers is true of the work of [Do].
type Check struct {
	Key, Scope string
	Result     Result
	Duration   time.Duration // spent on the check, without the handler's time and without Waited
	Waited     time.Duration // for another attempt with the key, see [Policy].Wait
	// Original is the TraceParent of the record that was there, if any: of the request that
	// a replay repeats, or that a conflict or mismatch is with. It may be empty.
	Original string
	// Repaired says that the key was acquired in place of a damaged record, see [Policy].
	Repaired bool
	Err      error // the cause of unavailable, bypassed, lost, incomplete and rejected
}
