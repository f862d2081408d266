package idempotency

import (
	"context"
	"log/slog"
	"net/http"
)

const defaultMaxBody = 1 << 20 // bytes; what one request holds in memory

// Middleware makes handlers idempotent by key. Make it with [New]. It is safe for concurrent
// use.
type Middleware struct {
	*keeper
	policyFor   func(*http.Request) *Policy
	scope       func(*http.Request) string
	writeError  func(http.ResponseWriter, *http.Request, *Error)
	observe     func(*http.Request, Check)
	keyRule     func(*http.Request, string) *Error
	replayHook  func(http.ResponseWriter, *http.Request, Record) *Error
	header      keyName
	dialect     Dialect
	traceParent func(context.Context) string
	headers     headerFilter
	maxBody     int64
}

// Option configures a [Middleware].
type Option func(*Middleware)

// New returns a middleware that keeps its records in store and asks policyFor for the policy
// of a request's route. A request with a nil policy passes through.
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

// WithSharedScope puts the keys of all clients into one scope. Use it only if there is a
// single client: otherwise one client's key is answered with another client's response.
func WithSharedScope() Option {
	return WithScope(func(*http.Request) string { return "" })
}

// WithScope sets whose keys these are, usually the authenticated account. A key means
// nothing outside its scope. [New] requires it, or [WithSharedScope].
func WithScope(scope func(*http.Request) string) Option {
	return func(m *Middleware) { m.scope = scope }
}

// WithErrorWriter replaces [WriteProblem], or the writer of a [WithDialect] before it. The writer
// must write e.Status, and Retry-After if e.RetryAfter is not zero.
func WithErrorWriter(write func(w http.ResponseWriter, r *http.Request, e *Error)) Option {
	return func(m *Middleware) { m.writeError = write }
}

// WithObserver sets a function that is called once for each request with a key, or without a
// required one: before its answer is sent, unless the answer is streamed. It is called from many
// goroutines at once and must be quick.
func WithObserver(observe func(*http.Request, Check)) Option {
	return func(m *Middleware) { m.observe = observe }
}

// WithHeader replaces Idempotency-Key as the name of the header that carries the key.
// [Policy].Header does so for one route.
func WithHeader(name string) Option {
	return func(m *Middleware) { m.header = keyName(name) }
}

// WithKeyRule sets what a client's key must be besides printable, such as a UUID. The rule returns
// the answer to a key that breaks it, or nil.
func WithKeyRule(rule func(r *http.Request, key string) *Error) Option {
	return func(m *Middleware) { m.keyRule = rule }
}

// WithReplayHook sets a function that is called before a kept answer is replayed. It may set
// headers, which the kept ones override, or return an answer that is sent instead, for example
// because the client has lost its permission since. It is not called where the handler's authority
// replays. A conflict needs no hook: the function of [WithErrorWriter] writes it.
func WithReplayHook(hook func(w http.ResponseWriter, r *http.Request, kept Record) *Error) Option {
	return func(m *Middleware) { m.replayHook = hook }
}

// WithTraceParent stores with each record which request wrote it: what traceParent returns for
// the request's context, usually in the notation of W3C Trace Context. The observer of a
// replay gets it in [Check].Original. The library does not interpret it.
func WithTraceParent(traceParent func(context.Context) string) Option {
	return func(m *Middleware) { m.traceParent = traceParent }
}

// WithHeaderAllowList replaces the names of the response headers that are kept and replayed.
// The default list is Cache-Control, Content-Disposition, Content-Encoding, Content-Language,
// Content-Location, Content-Type, ETag, Last-Modified, Link, Location and
// X-Content-Type-Options. Set-Cookie, which belongs to one client, and headers of the
// connection are never kept.
func WithHeaderAllowList(names ...string) Option {
	return func(m *Middleware) { m.headers = newHeaderFilter(names) }
}

// WithMaxBody limits the request body, in bytes; a larger one is answered 413. The default is
// 1 MiB.
func WithMaxBody(bytes int64) Option {
	return func(m *Middleware) { m.maxBody = bytes }
}

// WithMaxResponse limits how much of an answer is held back and kept: body and kept headers,
// in bytes. The default is 1 MiB. The client receives a larger answer in full, but its record
// is completed without a body, and a retry is answered 409 idempotency_response_not_kept: the
// handler does not run a second time. A stored answer over the limit is not sent either.
func WithMaxResponse(bytes int) Option {
	return func(m *Middleware) { m.maxResponse = bytes }
}

// WithMaxWaiters limits how many requests of this middleware wait at a time for others to
// finish (see [Policy].Wait). The others get their 409 at once. The default is 256.
func WithMaxWaiters(n int) Option {
	return func(m *Middleware) { m.waitSlots = make(chan struct{}, n) }
}

// WithLogger sets where failures are logged that clients do not see. The default is
// slog.Default. Scopes and keys are logged, bodies are not.
func WithLogger(log *slog.Logger) Option {
	return func(m *Middleware) { m.log = log }
}
