package idempotency

import (
	"net/http"
	"strconv"
)

// exchange is a [call] that came as an HTTP request.
type exchange struct {
	*Middleware
	call
	w   http.ResponseWriter
	r   *http.Request
	out *capture
}

// await waits for another attempt for as long as the policy or the client says.
func (x *exchange) await(met *Record) *Record {
	bound, preferred := x.policy.Wait, false
	if x.policy.MaxWait > 0 {
		if asked, ok := preferredWait(x.r.Header); ok {
			bound, preferred = min(asked, x.policy.MaxWait), true
		}
	}
	existing, waited := x.wait(x.r.Context(), met, bound)
	if preferred && (waited || bound == 0) {
		x.w.Header().Set(headerPreferenceApplied, "wait="+strconv.Itoa(wholeSeconds(bound)))
	}
	return existing
}

func (x *exchange) reject(result Result, e *Error) {
	if x.check.Err == nil {
		x.check.Err = e.Err
	}
	x.observe(x.r, x.conclude(result))
	x.write(x.w, e)
}

// write writes an error. One that says that the server is at fault is logged with its cause, except
// that of the store, which is logged where it arises.
func (x *exchange) write(w http.ResponseWriter, e *Error) {
	if e.Status >= http.StatusInternalServerError && e.Code != CodeStoreUnavailable || e.Code == CodeScopeMissing {
		x.log.WarnContext(x.r.Context(), "idempotency: request refused", "scope", x.check.Scope, "key", x.check.Key, "error", e)
	}
	x.writeError(w, x.r, e)
}
