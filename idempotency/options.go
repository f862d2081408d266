package idempotency

import (
	"context"
	"log/slog"
	"net/http"
)

// Option configures a [Middleware].
type Option func(*Middleware)

// WithSharedScope puts the keys of all clients into one scope. Use it only if there is a
// single client: otherwise one client's key is answered with another client's response.
func WithSharedScope() Option {
	return func(m *Middleware) {
		m.scope, m.sharedScope = func(*http.Request) string { return "" }, true
	}
}

// WithScope sets whose keys these are, usually the authenticated account. A key means nothing
// outside its scope. If the Host of a request chooses the tenant, the tenant belongs in the scope:
// the fingerprint has no Host, because replicas may have several names. [New] requires it, or
// [WithSharedScope].
func WithScope(scope func(*http.Request) string) Option {
	return func(m *Middleware) { m.scope, m.sharedScope = scope, false }
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
// the answer to a key that breaks it, or nil. A request whose answer is kept gets it all the same,
// as by [Middleware.Reject].
func WithKeyRule(rule func(r *http.Request, key string) *Error) Option {
	return func(m *Middleware) { m.keyRule = rule }
}

// WithReplayHook sets a function that is called before a kept answer is replayed. It may set
// headers, which the kept ones override, read the request's body, change the record's Response,
// which is a copy, or return an answer that is sent instead, for example because the client has
// lost its permission since. It is not called where the handler's authority replays. A conflict
// needs no hook: the function of [WithErrorWriter] writes it.
func WithReplayHook(hook func(w http.ResponseWriter, r *http.Request, kept *Record) *Error) Option {
	return func(m *Middleware) { m.replayHook = hook }
}

// WithTraceParent stores with each record which request wrote it: what traceParent returns for
// the request's context, usually in the notation of W3C Trace Context. The observer of a
// replay gets it in [Check].Original. The library does not interpret it.
func WithTraceParent(traceParent func(context.Context) string) Option {
	return func(m *Middleware) { m.traceParent = traceParent }
}

// WithHeaderAllowList replaces the names of the response headers that are kept and replayed, if
// the handler has set them. One that middleware further out had set to the same value is not kept:
// that middleware sets it for the replay, too. The default list is
// Access-Control-Allow-Credentials, Access-Control-Allow-Origin, Access-Control-Expose-Headers,
// Cache-Control, Content-Disposition, Content-Encoding, Content-Language, Content-Location,
// Content-Range, Content-Security-Policy, Content-Type, Cross-Origin-Opener-Policy,
// Cross-Origin-Resource-Policy, ETag, Last-Modified, Link, Location, Referrer-Policy, Vary,
// X-Content-Type-Options and X-Frame-Options. Set-Cookie, which belongs to one client, and headers
// of the connection are never kept.
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
