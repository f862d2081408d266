// Package transport is the client's side of idempotency keys: an [http.RoundTripper] that
// adds a key to a request, and repeats it with the same key until there is a whole answer.
//
//	client := &http.Client{Transport: &transport.Transport{}}
package transport

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"time"
)

// Defaults of a transport's zero values.
const (
	// DefaultMaxAttempts outlasts a restart of the server.
	DefaultMaxAttempts = 8
	// DefaultMaxElapsed is longer than the lease of a dead holder and the deadline of the
	// handler that takes over.
	DefaultMaxElapsed = 2 * time.Minute
	// DefaultAttemptTimeout is longer than the default deadline of a handler: a client that gives
	// up earlier finds its key in progress.
	DefaultAttemptTimeout = 35 * time.Second
	// DefaultBaseDelay is the longest first pause: a replica that is replaced is back soon.
	DefaultBaseDelay = 250 * time.Millisecond
	// DefaultMaxDelay is the longest pause that no Retry-After asked for.
	DefaultMaxDelay = 30 * time.Second
	// DefaultWait is shorter than what proxies usually allow for an answer.
	DefaultWait = 10 * time.Second
	// DefaultMaxBody is the default of the middleware, in bytes.
	DefaultMaxBody = 1 << 20
	// DefaultMaxResponse is the default of the middleware, in bytes: every answer that it
	// keeps is whole.
	DefaultMaxResponse = 1 << 20
)

// Transport adds a key to requests and repeats them. The zero value is ready to use, and a
// Transport is safe for concurrent use.
//
// A POST, PUT, PATCH or DELETE gets a random key unless the caller has set one. A caller that
// must be able to continue after its own restart sets and stores the key itself. GET, HEAD,
// OPTIONS and TRACE are repeated without a key (RFC 9110, section 9.2.1); other methods only
// with the caller's. Each call of RoundTrip is one logical request: a redirect that
// http.Client follows is another one, whose key follows from that of the first and from its own
// URL. An [Error] of either has the key of the first: repeating that one repeats both, as long as
// it is redirected to the same URL. An empty key counts as none.
//
//	answer                                      what happens
//	none: connection error, AttemptTimeout      repeated with the same key
//	cut in its body                             repeated with the same key
//	409 idempotency_in_progress                 repeated, and asks the server to wait
//	any other 409 with Retry-After              repeated
//	408, 425, 429, 500, 502, 503, 504           repeated
//	one that RetryIf names                      repeated
//	anything else, other 409s and 422 included  returned
//
// What fails in the same way each time is not repeated: a certificate that is not trusted, a
// server without TLS at an https URL, an address that is none, and a request that an
// [http.Transport] as Base cannot send, for example because of its scheme or a character in a
// header.
//
// An answer is whole, or it is none: its body is read before RoundTrip returns, up to
// MaxResponse. These are passed on before they have ended: longer bodies, text/event-stream,
// 101, a last answer that would have been repeated, and answers to requests that cannot be
// repeated. If such a body breaks off, reading it returns an [Error]. A body without a length that
// ends with its connection (HTTP/1.0) cannot be told from one that was cut.
//
// If there is no whole answer to a request with a key, the error is an [Error] with the key,
// for a caller that repeats the request itself. Of an answer, the key is in the header of
// Response.Request.
//
// 408, 425 and 429 say that nothing was executed and allow a retry (RFC 9110, section
// 15.5.9, RFC 8470, section 5.2, and RFC 6585, section 4); the middleware keeps none of
// them. A 409 with Retry-After says that the conflict will end; a server must not keep it.
//
// A pause is random, up to min(BaseDelay·2ⁿ, MaxDelay). If there is a Retry-After, the pause
// is that plus a random part: of the same size after a 429 or 503, which say that the server
// has too much to do, and of at most BaseDelay after other answers. When attempts, time or the
// request's context are used up, or would be by the pause, RoundTrip returns the last response
// or a wrapped error.
//
// net/http may send a request with an Idempotency-Key again by itself when a pooled
// connection turns out to be closed. The server can take that, but it would be an attempt
// that is neither counted nor delayed. Therefore requests with a body reach Base without GetBody,
// which prevents it: one attempt is one request on the wire. A request without a body may
// still be sent twice.
//
// The Timeout of an http.Client covers all attempts together, and its error hides the [Error].
// A deadline of the request's context does not.
type Transport struct {
	Base           http.RoundTripper // nil: http.DefaultTransport
	MaxAttempts    int               // including the first; 0: [DefaultMaxAttempts]
	MaxElapsed     time.Duration     // no attempt starts later; 0: [DefaultMaxElapsed]
	AttemptTimeout time.Duration     // until an answer is whole or passed on, see above; 0: [DefaultAttemptTimeout]; negative: none
	BaseDelay      time.Duration     // 0: [DefaultBaseDelay]
	MaxDelay       time.Duration     // 0: [DefaultMaxDelay]
	// Wait is how long the server is asked to wait for an attempt in progress before it
	// answers 409 again: Prefer: wait=<seconds> (RFC 7240, section 4.3) on the retry after
	// a 409 idempotency_in_progress, unless the caller has set Prefer. A server that does
	// not wait ignores it. At most half of AttemptTimeout is asked for, in whole seconds.
	// 0: [DefaultWait]; negative: never.
	Wait time.Duration
	// MaxBody, in bytes, limits what is buffered of a body without GetBody; a request with
	// a larger one is sent only once. 0: [DefaultMaxBody].
	MaxBody int64
	// MaxResponse, in bytes, limits what is read of an answer's body before RoundTrip
	// returns. 0: [DefaultMaxResponse]; negative: every body is passed on as it arrives, as
	// a client needs that reads endless answers of other types than text/event-stream. Of a
	// 409, 16 KiB are read in any case: they say whether to repeat.
	MaxResponse int64
	// RetryIf names answers that are repeated besides those of the table, by status and header,
	// such as 507 or 520 to 527 of a proxy. The body must not be read. nil: none.
	RetryIf func(*http.Response) bool
	// OnRetry is called before each pause.
	OnRetry func(Retry)
}

// Retry is what OnRetry gets.
type Retry struct {
	Request *http.Request // with the key in its header; its context is the caller's
	Attempt int           // the one that failed, counted from one
	Reason  string        // for people: an error, or a status
	Wait    time.Duration // the pause that follows
}

var _ http.RoundTripper = (*Transport)(nil)

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := bodyOf(r, orDefault(t.MaxBody, DefaultMaxBody))
	if err != nil {
		return nil, fmt.Errorf("idempotency: read request body: %w", err)
	}
	r = withKey(r)
	body.repeatable = body.repeatable && (isSafe(r.Method) || hasKey(r))
	began := time.Now()
	for attempt := 1; ; attempt++ {
		answer := t.attempt(r, body)
		reason, again := answer.retryReason(r.Context())
		if !again || !body.repeatable {
			return answer.result(r, attempt)
		}
		wait := t.pauseAfter(attempt, answer.response)
		if !t.affords(r.Context(), attempt, time.Since(began)+wait, wait) {
			return answer.result(r, attempt)
		}
		answer.discard()
		if t.OnRetry != nil {
			t.OnRetry(Retry{Request: r, Attempt: attempt, Reason: reason, Wait: wait})
		}
		if err := sleep(r.Context(), wait); err != nil {
			return nil, errorOf(r, fmt.Errorf("waiting after attempt %d (%s): %w", attempt, reason, err))
		}
		if answer.inProgress {
			r = t.preferWait(r)
		}
	}
}

// CloseIdleConnections closes the idle connections of Base; see
// [http.Client.CloseIdleConnections].
func (t *Transport) CloseIdleConnections() {
	if base, ok := t.base().(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}

// affords reports whether the budget allows one more attempt after a pause.
func (t *Transport) affords(ctx context.Context, attempt int, elapsed, wait time.Duration) bool {
	deadline, bounded := ctx.Deadline()
	return attempt < orDefault(t.MaxAttempts, DefaultMaxAttempts) &&
		elapsed <= orDefault(t.MaxElapsed, DefaultMaxElapsed) &&
		(!bounded || wait < time.Until(deadline))
}

// errNoAnswer is the cause when AttemptTimeout ends an attempt.
var errNoAnswer = fmt.Errorf("no answer in time: %w", context.DeadlineExceeded)

// attempt sends the request once. Its timeout ends when the answer is whole or passed on: reading
// the rest of the body may take as long as the caller wants.
func (t *Transport) attempt(r *http.Request, body *requestBody) *answer {
	content, err := body.open()
	if err != nil {
		return &answer{err: fmt.Errorf("open request body again: %w", err), fatal: true}
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	inTime := func() bool { return true }
	if timeout := t.attemptTimeout(); timeout > 0 {
		inTime = time.AfterFunc(timeout, func() { cancel(errNoAnswer) }).Stop
	}
	tried := false
	note := &httptrace.ClientTrace{
		GetConn: func(string) { tried = true },
		GotConn: func(httptrace.GotConnInfo) { tried = true }, // a connection of HTTP/2 may be taken without GetConn
	}
	once := r.WithContext(httptrace.WithClientTrace(ctx, note))
	once.Body, once.GetBody = content, nil
	a := &answer{cancel: cancel, retryIf: t.RetryIf}
	a.response, a.err = t.base().RoundTrip(once) //nolint:bodyclose // discard closes it, or the caller does
	_, checks := t.base().(*http.Transport)
	a.fatal = checks && !tried && ctx.Err() == nil // it has refused the request
	if a.err == nil && body.repeatable {
		a.read(orDefault(t.MaxResponse, DefaultMaxResponse))
	}
	if !inTime() {
		a.fail(errNoAnswer)
	}
	a.bind(r)
	return a
}

func (t *Transport) attemptTimeout() time.Duration {
	return orDefault(t.AttemptTimeout, DefaultAttemptTimeout)
}

// preferWait returns a copy of the request that asks the server to wait.
func (t *Transport) preferWait(r *http.Request) *http.Request {
	wait := orDefault(t.Wait, DefaultWait)
	if timeout := t.attemptTimeout(); timeout > 0 {
		wait = min(wait, timeout/2)
	}
	if wait < time.Second || len(r.Header["Prefer"]) > 0 {
		return r
	}
	return withHeader(r, "Prefer", "wait="+strconv.Itoa(int(wait/time.Second)))
}

func withHeader(r *http.Request, name, value string) *http.Request {
	r = r.Clone(r.Context())
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header.Set(name, value)
	return r
}

func (t *Transport) base() http.RoundTripper {
	if t.Base == nil {
		return http.DefaultTransport
	}
	return t.Base
}

// sleep returns after d, or earlier with the error of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// pauseAfter is exponential backoff with full jitter, or the server's Retry-After plus a random
// part, so that clients that got the same Retry-After do not return together.
func (t *Transport) pauseAfter(attempt int, response *http.Response) time.Duration {
	most := orDefault(t.MaxDelay, DefaultMaxDelay)
	delay := min(orDefault(t.BaseDelay, DefaultBaseDelay), most)
	asked, ok := retryAfter(response)
	if ok && !isOverloaded(response) {
		return asked + jitter(delay)
	}
	for range attempt - 1 {
		delay = min(2*delay, most) // step by step: a shift would overflow
	}
	return asked + jitter(delay)
}

// isOverloaded reports whether the answer says that the server has too much to do. Clients that
// return at the same interval again and again would keep it so.
func isOverloaded(response *http.Response) bool {
	return response.StatusCode == http.StatusTooManyRequests || response.StatusCode == http.StatusServiceUnavailable
}

func jitter(d time.Duration) time.Duration { return time.Duration(rand.Float64() * float64(d)) }

func orDefault[T int | int64 | time.Duration](value, otherwise T) T {
	if value == 0 {
		return otherwise
	}
	return value
}
