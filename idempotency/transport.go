package idempotency

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"
)

// Defaults of a transport's zero values.
const (
	// DefaultMaxAttempts rides out a restart, and ends what is broken for good.
	DefaultMaxAttempts = 8
	// DefaultMaxElapsed is longer than the lease of a holder that died and the
	// deadline of the handler that takes over.
	DefaultMaxElapsed = 2 * time.Minute
	// DefaultAttemptTimeout is longer than [DefaultDeadline]: who gives up on a
	// handler earlier finds its key in progress.
	DefaultAttemptTimeout = 35 * time.Second
	// DefaultBaseDelay is the most of the first pause: a replica that is being
	// replaced is back soon.
	DefaultBaseDelay = 250 * time.Millisecond
	// DefaultMaxDelay is the longest pause that a client takes on its own account.
	DefaultMaxDelay = 30 * time.Second
)

// Transport is the client's half: an [http.RoundTripper] that gives a request a
// key and repeats it, with the same key, until there is an answer. The zero
// value is ready to use, and it is safe for concurrent use:
//
//	client := &http.Client{Transport: &idempotency.Transport{}}
//
// A POST or PATCH gets a random key unless the caller has set one; a caller that
// wants to go on after its own restart sets one and stores it. GET, HEAD,
// OPTIONS, TRACE, PUT and DELETE are repeated as they are. Each call of
// RoundTrip is one logical request: a redirect that http.Client follows is
// another one.
//
//	answer                                      what is done
//	none: connection error, AttemptTimeout      again with the same key
//	409 idempotency_in_progress                 again
//	any other 409 with Retry-After              again
//	408, 425, 429, 500, 502, 503, 504           again
//	anything else, other 409s and 422 included  returned
//
// 408, 425 and 429 say that nothing was executed and invite another try (RFC
// 9110, section 15.5.9, RFC 8470, section 5.2, and RFC 6585, section 4); the
// middleware keeps none of them. A 409 with Retry-After says that the conflict
// ends by itself; a server must not keep it. A pause is random, up to min(BaseDelay·2ⁿ,
// MaxDelay), or what Retry-After says and up to BaseDelay more. Whatever ends
// the budget, be it attempts, time or the request's context, has the last
// response or a wrapped error returned; also when the pause would go beyond it.
//
// net/http may by itself send a request again that carries an Idempotency-Key
// when a connection from its pool turns out to be dead. The server wouldn't mind,
// but it would be a second attempt that nobody counts and paces. So requests
// with a body are given to Base without GetBody, which prevents it: one attempt
// is one request on the wire. Requests without a body may still be sent twice.
//
// An http.Client's Timeout covers all attempts together.
type Transport struct {
	Base           http.RoundTripper // nil: http.DefaultTransport
	MaxAttempts    int               // the first one included
	MaxElapsed     time.Duration     // since the first attempt began; none begins later
	AttemptTimeout time.Duration     // from an attempt's begin to its response header; negative: none
	BaseDelay      time.Duration
	MaxDelay       time.Duration
	// MaxBody, in bytes, bounds what is buffered of a body without GetBody;
	// larger ones are sent once. 0: [DefaultMaxBody].
	MaxBody int64
	// OnRetry is told before each pause which attempt failed, counted from one,
	// why, and how long the pause will be.
	OnRetry func(attempt int, reason string, wait time.Duration)

	// Now, Sleep and Random stand in for time.Now, a pause that ends early with
	// ctx.Err(), and a random number in [0, 1), for tests.
	Now    func() time.Time
	Sleep  func(ctx context.Context, d time.Duration) error
	Random func() float64
}

var _ http.RoundTripper = (*Transport)(nil)

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := bodyOf(r, orDefault(t.MaxBody, DefaultMaxBody))
	if err != nil {
		return nil, fmt.Errorf("idempotency: read request body: %w", err)
	}
	r = withKey(r)
	repeatable := body.repeatable && (isIdempotent(r.Method) || len(r.Header[HeaderKey]) > 0)
	began := t.now()
	for attempt := 1; ; attempt++ {
		answer := t.attempt(r, body)
		reason, again := answer.retryReason(r.Context())
		if !again || !repeatable {
			return answer.result(attempt)
		}
		wait := t.pauseAfter(attempt, answer.response)
		if !t.affords(r.Context(), attempt, t.now().Sub(began)+wait, wait) {
			return answer.result(attempt)
		}
		answer.discard()
		if t.OnRetry != nil {
			t.OnRetry(attempt, reason, wait)
		}
		if err := t.sleep(r.Context(), wait); err != nil {
			return nil, fmt.Errorf("idempotency: waiting after attempt %d (%s): %w", attempt, reason, err)
		}
	}
}

// CloseIdleConnections has the base close what it doesn't use; see
// [http.Client.CloseIdleConnections].
func (t *Transport) CloseIdleConnections() {
	if base, ok := t.base().(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}

// affords says whether the budget has room for one more attempt after a pause.
func (t *Transport) affords(ctx context.Context, attempt int, elapsed, wait time.Duration) bool {
	deadline, bounded := ctx.Deadline()
	return attempt < orDefault(t.MaxAttempts, DefaultMaxAttempts) &&
		elapsed <= orDefault(t.MaxElapsed, DefaultMaxElapsed) &&
		(!bounded || wait < time.Until(deadline))
}

// errNoAnswer is the cause of an attempt's end by AttemptTimeout.
var errNoAnswer = fmt.Errorf("no answer in time: %w", context.DeadlineExceeded)

// attempt sends the request once. Its timeout ends with the response header: a
// body may take as long as the caller likes.
func (t *Transport) attempt(r *http.Request, body *requestBody) *answer {
	content, err := body.open()
	if err != nil {
		return &answer{err: fmt.Errorf("idempotency: open request body again: %w", err), fatal: true}
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	inTime := func() bool { return true }
	if timeout := orDefault(t.AttemptTimeout, DefaultAttemptTimeout); timeout > 0 {
		inTime = time.AfterFunc(timeout, func() { cancel(errNoAnswer) }).Stop
	}
	once := r.WithContext(ctx)
	once.Body, once.GetBody = content, nil
	a := &answer{cancel: cancel}
	a.response, a.err = t.base().RoundTrip(once) //nolint:bodyclose // discard closes it, or the caller does
	a.readProblem()
	if !inTime() {
		a.discard()
		a.response, a.err = nil, errNoAnswer
	}
	a.bindContext()
	return a
}

// withKey gives a copy of the request that has a key if it needs one.
func withKey(r *http.Request) *http.Request {
	needs := r.Method == http.MethodPost || r.Method == http.MethodPatch
	if !needs || len(r.Header[HeaderKey]) > 0 {
		return r
	}
	r = r.Clone(r.Context())
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header.Set(HeaderKey, NewKey())
	return r
}

// isIdempotent follows RFC 9110, section 9.2.2.
func isIdempotent(method string) bool {
	switch method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return false
}

func (t *Transport) base() http.RoundTripper {
	if t.Base == nil {
		return http.DefaultTransport
	}
	return t.Base
}

func (t *Transport) now() time.Time {
	if t.Now == nil {
		return time.Now()
	}
	return t.Now()
}

func (t *Transport) random() float64 {
	if t.Random == nil {
		return rand.Float64()
	}
	return t.Random()
}

func (t *Transport) sleep(ctx context.Context, d time.Duration) error {
	if t.Sleep != nil {
		return t.Sleep(ctx, d)
	}
	if !pause(ctx, d) {
		return ctx.Err()
	}
	return nil
}

func orDefault[T int | int64 | time.Duration](value, otherwise T) T {
	if value == 0 {
		return otherwise
	}
	return value
}
