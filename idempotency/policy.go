package idempotency

import (
	"net/http"
	"time"
)

// Unavailable says what to do when the store can't answer.
type Unavailable int

const (
	// FailClosed answers 503 and doesn't run the handler. Choose it where
	// nothing below the handler would notice a second execution.
	FailClosed Unavailable = iota
	// FailOpen runs the handler all the same. Choose it only where an authority
	// below, such as a unique index on scope and key written in the same
	// transaction as the change, decides finally.
	FailOpen
)

// Defaults of a policy's zero values.
const (
	// DefaultTTL is a day: longer than any client goes on retrying.
	DefaultTTL = 24 * time.Hour
	// DefaultLease is how long a key stays blocked after its holder died. The
	// heartbeat renews it, so it need not cover the slowest handler.
	DefaultLease = 15 * time.Second
	// DefaultDeadline ends handlers whose client may have gone long ago.
	DefaultDeadline = 30 * time.Second
)

// Policy is how one route treats keys. The zero value is usable: an optional
// key, the default durations, failing closed.
type Policy struct {
	Required      bool          // 400 without a key
	TTL           time.Duration // how long a finished record is kept
	Lease         time.Duration // how long a record lives without a heartbeat, which comes every third of it
	Deadline      time.Duration // the handler's own, detached from the client's connection
	OnUnavailable Unavailable
	// Wait has a request whose key is held by another attempt wait for the end of
	// that one, and get its answer, or its turn; after so long it gets the 409
	// that it gets at once if Wait is 0. See [WithMaxWaiters].
	Wait time.Duration
	// MaxWait bounds what a client may ask for instead, by Prefer: wait=<seconds>
	// (RFC 7240, section 4.3). 0: that preference is ignored.
	MaxWait time.Duration
	// ExcludedFields are JSON member names that are left out of the
	// fingerprint, at any depth: what differs between retries of one request,
	// such as the time of sending.
	ExcludedFields []string
}

// Always gives every request the same policy. GET, HEAD, OPTIONS, PUT and
// DELETE are idempotent by nature (RFC 9110, section 9.2.2): a policy function
// that answers nil for them saves their round trips.
func Always(p Policy) func(*http.Request) *Policy {
	return func(*http.Request) *Policy { return &p }
}

func (p Policy) withDefaults() Policy {
	if p.TTL <= 0 {
		p.TTL = DefaultTTL
	}
	if p.Lease <= 0 {
		p.Lease = DefaultLease
	}
	if p.Deadline <= 0 {
		p.Deadline = DefaultDeadline
	}
	return p
}

// kept says whether an answer is final, and as what it is kept. Answers that
// invite a retry are not: 5xx, and the 4xx that speak of this moment (408
// Request Timeout, 425 Too Early, 429 Too Many Requests).
func kept(code int) (Status, bool) {
	switch {
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests:
		return "", false
	case code >= 200 && code < 400:
		return StatusCompleted, true
	case code >= 400 && code < 500:
		return StatusFailed, true
	}
	return "", false
}
