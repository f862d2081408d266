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
		m.receive(w, r, policy.withDefaults(), next)
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

// receive reads the key and the body, and answers requests in which one of them is wrong.
func (m *Middleware) receive(w http.ResponseWriter, r *http.Request, policy Policy, next http.Handler) {
	x := &exchange{Middleware: m, w: w, r: r, call: call{policy: policy, began: time.Now()}}
	name := m.header
	if policy.Header != "" {
		name = keyName(policy.Header)
	}
	key, present, problem := name.parse(r.Header)
	if present && problem == nil && m.keyRule != nil {
		problem = m.keyRule(r, key)
	}
	switch {
	case problem != nil:
		x.reject(ResultMalformed, problem)
		return
	case present || policy.KeyFrom != nil:
	case policy.Required:
		x.reject(ResultMissing, name.missing(nil))
		return
	default:
		next.ServeHTTP(w, r)
		return
	}
	if present && m.dialect.echoesKey {
		w.Header().Set(string(name), r.Header.Get(string(name)))
	}
	x.check.Key, x.check.Scope = key, m.scope(r)
	body, err := readBody(w, r, m.maxBody)
	if err != nil {
		x.reject(ResultRejected, bodyError(err))
		return
	}
	claim, err := x.claimFor(key, body)
	if err != nil {
		x.reject(ResultMissing, name.missing(err))
		return
	}
	x.prepare(m.keeper, claim)
	x.serve(next)
}

// claimFor returns the claim of a request with the client's key, or one made of its content.
func (x *exchange) claimFor(key string, body []byte) (*Claim, error) {
	claim := &Claim{
		Scope: x.check.Scope, Key: key, Owner: NewOwner(), TTL: x.policy.TTL,
		TraceParent: x.traceParent(x.r.Context()),
	}
	content := x.policy.KeyFrom
	if content == nil || key != "" && !content.Always {
		claim.Fingerprint = fingerprint(x.r, body, x.policy.ExcludedFields, x.policy.Headers)
		return claim, nil
	}
	var err error
	claim.Key, claim.Fingerprint, err = content.ofRequest(x.r, body)
	x.check.Key = claim.Key
	return claim, err
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
