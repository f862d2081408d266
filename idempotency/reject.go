package idempotency

import (
	"errors"
	"net/http"
	"time"
)

// Reject answers a request that a check in front of the middleware rejects, such as validation. The
// check may be stricter than it was when the request was executed. So the request gets the answer
// that is kept for it, or 409 while it is in progress, and only otherwise what reject writes.
// Reject acquires no key, and keeps no answer. The request's body must be unread, or put back.
//
// An authority may have an answer that the store has lost. reject finds the claim of the request in
// its context, with Bypassed set, and asks the authority before it rejects; without a well-formed
// key there is no claim. Without an authority (see [Policy]), Reject answers 503 if the store
// cannot be reached, because the request may have been executed. A store that is no [Reader] is not
// asked.
func (m *Middleware) Reject(w http.ResponseWriter, r *http.Request, reject http.HandlerFunc) {
	m.rejectAs(ResultRejected, w, r, reject)
}

func (m *Middleware) rejectAs(result Result, w http.ResponseWriter, r *http.Request, reject http.HandlerFunc) {
	policy := m.policyFor(inUpperCase(r))
	if policy == nil {
		reject(w, r)
		return
	}
	x := &exchange{Middleware: m, w: w, r: r, call: call{policy: policy.withDefaults(), began: time.Now()}}
	name := m.keyName(x.policy)
	key, present, problem := name.parse(r.Header)
	if problem == nil && (present || policy.KeyFrom != nil) {
		_, problem = x.identify(name, key)
	}
	switch {
	case x.claim != nil:
		x.answerRejected(result, reject)
	case problem != nil && problem.Code == CodeBodyConsumed: // a mistake of the program: each retry would be rejected
		x.reject(ResultRejected, problem)
	default:
		reject(w, r)
	}
}

func (x *exchange) answerRejected(result Result, reject http.HandlerFunc) {
	existing, err := Lookup(x.r.Context(), x.store, x.claim.Scope, x.claim.Key)
	x.check.Err = err
	switch {
	case existing != nil && existing.Fingerprint == x.claim.Fingerprint:
		x.answer(existing)
	case err != nil && !errors.Is(err, errors.ErrUnsupported) && !x.policy.hasAuthority():
		x.reject(ResultUnavailable, storeUnavailable(err))
	default:
		x.claim.Bypassed, x.check.Result = true, result
		x.run(reject)
	}
}
