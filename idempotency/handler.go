package idempotency

import (
	"net/http"
	"strings"
	"time"
)

// Handler wraps next. A request that already has a claim, from a middleware further out,
// passes through.
func (m *Middleware) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		policy := m.policyFor(inUpperCase(r))
		if policy == nil || ClaimFrom(r.Context()) != nil {
			next.ServeHTTP(w, r)
			return
		}
		m.admit(w, r, policy.withDefaults(), next)
	})
}

// inUpperCase returns the request with its method in upper case. Methods are case-sensitive
// (RFC 9110, section 9.1), but a handler that ignores the method must not run without a key
// because the client wrote "post".
func inUpperCase(r *http.Request) *http.Request {
	method := strings.ToUpper(r.Method)
	if method == r.Method {
		return r
	}
	upper := *r
	upper.Method = method
	return &upper
}

// admit reads the key and the body, and answers requests in which one of them is wrong.
func (m *Middleware) admit(w http.ResponseWriter, r *http.Request, policy Policy, next http.Handler) {
	x := &exchange{Middleware: m, w: w, r: r, call: call{policy: policy, began: time.Now()}}
	key, present, problem := ParseKey(r.Header)
	switch {
	case problem != nil:
		x.reject(ResultMalformed, problem)
		return
	case !present && policy.Required:
		x.reject(ResultMissing, keyMissing())
		return
	case !present:
		next.ServeHTTP(w, r)
		return
	}
	x.check.Key, x.check.Scope = key, m.scope(r)
	body, err := readBody(w, r, m.maxBody)
	if err != nil {
		x.reject(ResultRejected, bodyError(err))
		return
	}
	x.prepare(&m.keeper, &Claim{
		Scope: x.check.Scope, Key: key, Owner: NewOwner(), TTL: policy.TTL,
		TraceParent: m.traceParent(r.Context()),
		Fingerprint: fingerprint(r, body, policy.ExcludedFields, policy.Headers),
	})
	x.serve(next)
}

// serve acquires the key and runs the handler, or answers without it.
func (x *exchange) serve(next http.Handler) {
	ctx := x.r.Context()
	existing, err := x.holder.take(ctx)
	if err == nil && existing.isInProgress() {
		existing = x.await(existing)
	}
	switch {
	case err == nil && existing != nil:
		x.answer(existing)
	case err == nil || x.failsOpen(ctx, err):
		x.run(next)
	default:
		x.reject(ResultUnavailable, storeUnavailable(err))
	}
}
