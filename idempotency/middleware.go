package idempotency

import (
	"context"
	"crypto/sha256"
	"net/http"
	"reflect"
	"strings"
	"time"
)

const defaultMaxBody = 1 << 20 // bytes; what one request holds in memory

// Middleware makes handlers idempotent by key. Make it with [New]. It is safe for concurrent
// use.
type Middleware struct {
	*keeper
	policyFor   func(*http.Request) *Policy
	scope       func(*http.Request) string
	sharedScope bool // it is "" for all
	writeError  func(http.ResponseWriter, *http.Request, *Error)
	observe     func(*http.Request, Check)
	keyRule     func(*http.Request, string) *Error
	replayHook  func(http.ResponseWriter, *http.Request, *Record) *Error
	header      keyName
	dialect     Dialect
	traceParent func(context.Context) string
	headers     headerFilter
	maxBody     int64
}

// New returns a middleware that keeps its records in store and asks policyFor for the policy
// of a request's route. A request with a nil policy passes through, and OPTIONS always: a browser
// sends it without a key before a request to another origin.
//
// New panics without a store, a policyFor and one of [WithScope] and [WithSharedScope], and
// if an option is nil or negative: such a program is wrong from its first request on.
func New(store Store, policyFor func(*http.Request) *Policy, opts ...Option) *Middleware {
	m := &Middleware{
		keeper:      newKeeper(store),
		policyFor:   policyFor,
		writeError:  WriteProblem,
		observe:     func(*http.Request, Check) {},
		header:      HeaderKey,
		traceParent: func(context.Context) string { return "" },
		headers:     newHeaderFilter(defaultHeaders),
		maxBody:     defaultMaxBody,
	}
	for _, opt := range opts {
		opt(m)
	}
	m.mustBeComplete()
	m.background.init(m.log)
	return m
}

func (m *Middleware) mustBeComplete() {
	switch {
	case m.store == nil, m.policyFor == nil:
		panic("idempotency: New needs a store and a function that returns policies")
	case m.scope == nil:
		panic("idempotency: New needs WithScope, or WithSharedScope if there is a single client")
	case m.writeError == nil, m.observe == nil, m.traceParent == nil, m.log == nil:
		panic("idempotency: an option of New is nil")
	case m.header == "":
		panic("idempotency: the name of the key's header is empty")
	case m.maxBody < 0, m.maxResponse < 0:
		panic("idempotency: an option of New is negative")
	}
}

// Wait returns when the steps that outlived their requests have ended, after a few seconds at
// most: from now on none of them is repeated. Call it after [http.Server.Shutdown] and before
// closing the store.
func (m *Middleware) Wait() { m.background.wait() }

// Waiting returns how many requests are waiting for another attempt with their key.
func (m *Middleware) Waiting() int { return len(m.waitSlots) }

// Handler wraps next. A request within another one's handler, whose context it has, gets a claim of
// its own if its key or scope is another one. With the same key, or without one, it passes through:
// it is a part of the request around it.
//
// Handler panics if next is an [http.TimeoutHandler]: use [Policy].Deadline.
func (m *Middleware) Handler(next http.Handler) http.Handler {
	if reflect.TypeOf(next) == reflect.TypeOf(http.TimeoutHandler(nil, 0, "")) {
		panic("idempotency: an http.TimeoutHandler inside of Middleware.Handler answers 503 while its handler goes on, " +
			"and a retry would then run beside it. Use Policy.Deadline instead")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked := inUpperCase(r)
		policy := m.policyFor(asked)
		if policy == nil || asked.Method == http.MethodOptions {
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
	name := m.keyName(policy)
	key, present, problem := name.parse(r.Header)
	if around := ClaimFrom(r.Context()); around != nil && (!present && policy.KeyFrom == nil || around.isOf(m.scope(r), key)) {
		next.ServeHTTP(w, r)
		return
	}
	if present && problem == nil && m.keyRule != nil {
		if broken := m.keyRule(r, key); broken != nil {
			m.rejectAs(ResultMalformed, w, r, func(w http.ResponseWriter, r *http.Request) { m.writeError(w, r, broken) })
			return
		}
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
	if result, problem := x.identify(name, key); problem != nil {
		x.reject(result, problem)
		return
	}
	if ClaimFrom(r.Context()).isOf(x.claim.Scope, x.claim.Key) { // with a key from content
		next.ServeHTTP(w, r)
		return
	}
	x.serve(next)
}

// identify makes the claim of a request with a key, or with one made of its content.
func (x *exchange) identify(name keyName, key string) (Result, *Error) {
	if key != "" && x.dialect.echoesKey {
		x.w.Header().Set(string(name), x.r.Header.Get(string(name)))
	}
	x.check.Key, x.check.Scope = key, x.scope(x.r)
	if x.check.Scope == "" && !x.sharedScope {
		return ResultRejected, scopeMissing()
	}
	body, err := readBody(x.w, x.r, x.maxBody)
	if err != nil {
		return ResultRejected, bodyError(err)
	}
	claim, err := x.claimFor(key, body)
	if err != nil {
		return ResultMissing, &Error{Status: http.StatusBadRequest, Code: CodeKeyMissing, Err: err,
			Message: "The idempotency key is made of the request's content: " + strings.TrimPrefix(err.Error(), "idempotency: ")}
	}
	x.prepare(x.keeper, claim)
	return "", nil
}

// keyName is the name of the header that carries the key.
func (m *Middleware) keyName(policy Policy) keyName {
	if policy.Header != "" {
		return keyName(policy.Header)
	}
	return m.header
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
	if parts := headerParts(x.r, x.policy.Headers); parts != nil {
		claim.Fingerprint = sha256.Sum256(append(claim.Fingerprint[:], parts...))
	}
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
