package idempotency

import (
	"context"
	"log/slog"
	"net/http"
)

// DefaultMaxBody and DefaultMaxResponse, in bytes, bound what one request may
// hold in memory, and what one record may hold in the store.
const (
	DefaultMaxBody     = 1 << 20
	DefaultMaxResponse = 1 << 20
)

// Option configures a [Middleware].
type Option func(*Middleware)

// WithScope says whose keys these are, usually the authenticated account; a key
// means nothing outside of its scope. Without it all clients share one scope,
// and one client's key answers with another client's response.
func WithScope(scope func(*http.Request) string) Option {
	return func(m *Middleware) { m.scope = scope }
}

// WithErrorWriter replaces [WriteProblem]. The writer must write e.Status and
// should write Retry-After when e.RetryAfter isn't zero.
func WithErrorWriter(write func(w http.ResponseWriter, r *http.Request, e *Error)) Option {
	return func(m *Middleware) { m.writeError = write }
}

// WithObserver has every check reported, before its answer is sent. It is
// called from many goroutines at once and should be quick.
func WithObserver(observe func(*http.Request, Check)) Option {
	return func(m *Middleware) { m.observe = observe }
}

// WithTraceParent has records say which request wrote them, as traceparent tells
// by a request's context, usually in the notation of W3C Trace Context. Whoever
// replays a record is told by [Check].Original. The library only keeps it.
func WithTraceParent(traceParent func(context.Context) string) Option {
	return func(m *Middleware) { m.traceParent = traceParent }
}

// WithHeaderAllowList replaces the names of the response headers that are kept
// and replayed. Set-Cookie, which belongs to one client at one moment, and
// headers of the connection are never kept, even if named.
func WithHeaderAllowList(names ...string) Option {
	return func(m *Middleware) { m.headers = newHeaderFilter(names) }
}

// WithMaxBody bounds the request body, in bytes; a larger one is answered 413.
func WithMaxBody(bytes int64) Option {
	return func(m *Middleware) { m.maxBody = bytes }
}

// WithMaxResponse bounds how much of a response body is held back and kept, in
// bytes. The client receives a larger one in full, but the record is completed
// without a body as soon as the bound is passed, and a retry is answered 409
// idempotency_response_not_kept: the handler never runs a second time.
func WithMaxResponse(bytes int) Option {
	return func(m *Middleware) { m.maxResponse = bytes }
}

// DefaultMaxWaiters is how many requests wait at a time: each holds a connection
// and its body.
const DefaultMaxWaiters = 256

// WithMaxWaiters bounds how many requests of this middleware wait at a time for
// others to finish (see [Policy].Wait). Those beyond get their 409 at once.
func WithMaxWaiters(n int) Option {
	return func(m *Middleware) { m.waitSlots = make(chan struct{}, n) }
}

// WithLogger replaces slog.Default for what goes wrong without a client seeing
// it. Scopes and keys are logged, bodies are not.
func WithLogger(log *slog.Logger) Option {
	return func(m *Middleware) { m.log = log }
}

// headerFilter holds canonical names.
type headerFilter map[string]bool

var defaultHeaders = []string{
	"Cache-Control", "Content-Disposition", "Content-Encoding", "Content-Language", "Content-Location",
	"Content-Type", "ETag", "Last-Modified", "Link", "Location", "X-Content-Type-Options",
}

// neverKept are of one client (Set-Cookie), of one connection or transfer (RFC
// 9110, section 7.6.1), or our own.
var neverKept = []string{
	"Set-Cookie", "Set-Cookie2", "Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade", "Content-Length", "Date", HeaderReplay, headerPreferenceApplied,
}

func newHeaderFilter(names []string) headerFilter {
	f := make(headerFilter, len(names))
	for _, name := range names {
		f[http.CanonicalHeaderKey(name)] = true
	}
	for _, name := range neverKept {
		delete(f, name)
	}
	return f
}

// pick gives a deep copy of the allowed headers. A name without values is
// copied too: it keeps net/http from guessing a Content-Type.
func (f headerFilter) pick(h http.Header) http.Header {
	picked := http.Header{}
	for name, values := range h {
		if f[http.CanonicalHeaderKey(name)] {
			picked[name] = append([]string(nil), values...)
		}
	}
	return picked
}
