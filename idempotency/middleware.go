package idempotency

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"
)

// storeTimeout limits each step at the store, including its repetition, for stores without
// timeouts of their own: a client waits for it.
const storeTimeout = 2 * time.Second

// Middleware makes handlers idempotent by key. Make it with [New]. It is safe for concurrent
// use.
type Middleware struct {
	store       Store
	policyFor   func(*http.Request) *Policy
	scope       func(*http.Request) string
	writeError  func(http.ResponseWriter, *http.Request, *Error)
	observe     func(*http.Request, Check)
	traceParent func(context.Context) string
	headers     headerFilter
	maxBody     int64
	maxResponse int
	log         *slog.Logger

	background background
	waitSlots  chan struct{}
}

// New returns a middleware that keeps its records in store and asks policyFor for the policy
// of a request's route. A request with a nil policy passes through.
//
// New panics without a store, a policyFor and one of [WithScope] and [WithSharedScope], and
// if an option is nil or negative: such a program is wrong from its first request on.
func New(store Store, policyFor func(*http.Request) *Policy, opts ...Option) *Middleware {
	m := &Middleware{
		store: store, policyFor: policyFor,
		writeError:  WriteProblem,
		observe:     func(*http.Request, Check) {},
		traceParent: func(context.Context) string { return "" },
		headers:     newHeaderFilter(defaultHeaders),
		maxBody:     defaultMaxBody, maxResponse: defaultMaxResponse,
		log:       slog.Default(),
		waitSlots: make(chan struct{}, defaultMaxWaiters),
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
	c := &call{Middleware: m, w: w, r: r, policy: policy, began: time.Now()}
	key, present, problem := ParseKey(r.Header)
	switch {
	case problem != nil:
		c.reject(ResultMalformed, problem)
		return
	case !present && policy.Required:
		c.reject(ResultMissing, keyMissing())
		return
	case !present:
		next.ServeHTTP(w, r)
		return
	}
	c.check.Key, c.check.Scope = key, m.scope(r)
	body, err := readBody(w, r, m.maxBody)
	if err != nil {
		c.reject(ResultRejected, bodyError(err))
		return
	}
	c.prepare(body)
	c.serve(next)
}

// errBodyConsumed says that middleware further out has read the request's body.
var errBodyConsumed = errors.New("the request's body was read before the idempotency middleware; " +
	"middleware that reads it must put a copy back, and set ContentLength to -1 if the length differs")

// readBody reads the body and puts an unread copy in its place.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		if isConsumed(r, nil) {
			return nil, errBodyConsumed
		}
		return nil, nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err != nil {
		return nil, err
	}
	if isConsumed(r, body) {
		return nil, errBodyConsumed
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, nil
}

// isConsumed reports whether something read the body before: net/http returns as many bytes
// as Content-Length says, or an error. Without a length, only a parsed form shows it.
func isConsumed(r *http.Request, body []byte) bool {
	parsed := len(r.PostForm) > 0 || r.MultipartForm != nil
	return int64(len(body)) < r.ContentLength || len(body) == 0 && r.ContentLength < 0 && parsed
}

// detached takes one step at the store, even if the client is gone.
func detached(ctx context.Context, step func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	return step(ctx)
}
