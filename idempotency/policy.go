package idempotency

import (
	"net/http"
	"slices"
	"time"
)

// FailureMode is what the middleware does when the store cannot be reached.
type FailureMode int

const (
	// FailClosed answers 503 and does not run the handler. Choose it if nothing below the
	// handler would notice a second execution.
	FailClosed FailureMode = iota
	// FailOpen runs the handler without the store. Choose it only if an authority below the
	// handler prevents a second execution, such as a unique index on scope and key that is
	// written in the same transaction as the change.
	FailOpen
)

// Defaults of a policy's zero values.
const (
	// DefaultTTL is longer than clients usually retry.
	DefaultTTL = 24 * time.Hour
	// DefaultLease is how long a key stays blocked after its holder died. The heartbeat
	// renews it, so it need not cover the slowest handler.
	DefaultLease = 15 * time.Second
	// DefaultDeadline ends handlers whose client may be gone.
	DefaultDeadline = 30 * time.Second
)

// Policy is how one route treats keys. The zero value is ready to use: an optional key, the
// default durations, failing closed. A duration that is not positive stands for its default.
type Policy struct {
	Required    bool          // 400 without a key
	Header      string        // that carries the key; "": the middleware's, see [WithHeader]
	TTL         time.Duration // how long an answer is kept, from the arrival of the request
	Lease       time.Duration // how long a key is held without a heartbeat, which comes every third of it
	Deadline    time.Duration // of the handler, independent of the client's connection
	FailureMode FailureMode
	// Authority says that an authority below the handler prevents a second execution, as
	// [FailOpen] needs it, which implies it. A damaged record is then replaced, if the store is a
	// [Repairer], and the authority decides. Without an authority the key stays unavailable.
	Authority bool
	// Fate decides what becomes of the key after an answer, by status and header. nil, and
	// [FateByDefault], stand for the table of this package. It has no effect on [Do].
	Fate func(status int, header http.Header) Fate
	// UnknownFor is how long a key stays in progress after an answer with [FateUnknown], or after
	// its process died: longer than an upstream may take. Default: the Lease. A shorter Lease is
	// raised to it.
	UnknownFor time.Duration
	// Wait is how long a request waits if another attempt holds its key. When that one ends,
	// the request gets its answer, or its turn. After Wait it gets a 409; if Wait is 0, at
	// once. See [WithMaxWaiters].
	Wait time.Duration
	// MaxWait limits what a client may ask for instead, with Prefer: wait=<seconds>
	// (RFC 7240, section 4.3). 0: the preference is ignored.
	MaxWait time.Duration
	// KeyFrom makes the key of a request that has none of its content. nil: such a request has
	// no key.
	KeyFrom *Content
	// ExcludedFields are the JSON members that are left out of the fingerprint, because they
	// differ between retries of one request, such as the time of sending. Each is a path:
	// "sent_at" is a member of the body itself, "account.sent_at" a member of its member account.
	// An array is no step, so "items.note" is in each element of items. Names are compared
	// exactly, also upper and lower case; the value does not matter, and may be null.
	ExcludedFields []string
	// Headers are the names of request headers that belong to the request: they are part of the
	// fingerprint where they are sent. Name those that choose the operation or its object, such as
	// Host, If-Match, SOAPAction, X-Amz-Target, Destination (WebDAV), or the version of the API.
	// The media type and the headers that replace the method always count, see [FingerprintOf].
	Headers []string
}

// Always returns the same policy for every request except the safe ones, which pass through: GET,
// HEAD, OPTIONS and TRACE (RFC 9110, section 9.2.1), unless a header replaces their method. A
// policy function of your own may return a policy for GET. PUT and DELETE are idempotent (RFC
// 9110, section 9.2.2), but a repetition also undoes what others have changed since the first one:
// return nil for them only if nobody else writes the same resource.
func Always(p Policy) func(*http.Request) *Policy {
	return func(r *http.Request) *Policy {
		switch r.Method {
		case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
			if !slices.ContainsFunc(overrides, func(name string) bool { return len(r.Header[name]) > 0 }) {
				return nil
			}
		}
		return &p
	}
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
	if p.UnknownFor <= 0 {
		p.UnknownFor = p.Lease
	}
	p.Lease = max(p.Lease, p.UnknownFor)
	return p
}

func (p Policy) hasAuthority() bool { return p.Authority || p.FailureMode == FailOpen }
