package checkout

import (
	"fmt"
	"time"
)

// Kind groups errors by what the caller can do about them.
type Kind string

// The kinds of a domain error.
const (
	KindInvalid       Kind = "invalid"       // the request can never succeed as it is
	KindUnauthorized  Kind = "unauthorized"  // the API key is unknown or revoked
	KindNotFound      Kind = "not_found"     // no such resource in this account
	KindConflict      Kind = "conflict"      // the resource is in a state that forbids it
	KindPrecondition  Kind = "precondition"  // the client's own condition does not hold
	KindUnprocessable Kind = "unprocessable" // understood, and refused by a business rule
	KindDeclined      Kind = "declined"      // the provider refused to move the money
	KindUnavailable   Kind = "unavailable"   // something we need is away; retrying is safe
)

// Error is a domain error: a code and a message that are safe to show to a client. The cause is
// only logged.
type Error struct {
	Kind    Kind
	Code    string
	Message string

	// The answer of a Retryable error is not kept under the key. All others are final and are kept.
	Retryable  bool
	RetryAfter time.Duration // a hint; zero says nothing
	// Since is when the thing that blocks this command began, by the store's clock. If it is set,
	// it counts instead of RetryAfter.
	Since    time.Time
	Resource string // path of what the error is about; may be empty

	cause error
}

func (e *Error) Error() string {
	if e.cause != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Message, e.cause)
	}
	return e.Code + ": " + e.Message
}

// RequestOutcome is what a request led to.
type RequestOutcome string

// The outcomes of a request.
const (
	Done          RequestOutcome = "done"            // the changes are made; the answer is kept
	Refused       RequestOutcome = "refused"         // for good; the answer is kept
	RefusedForNow RequestOutcome = "refused for now" // nothing was done, and no older copy of the request may act afterwards
	InProgress    RequestOutcome = "in progress"     // another attempt at the request has not ended
	Unknown       RequestOutcome = "unknown"         // a retry finds out what was done
)

// Outcome says what a request led to that ended with this error; nil is none.
func (e *Error) Outcome() RequestOutcome {
	switch {
	case e == nil:
		return Done
	case !e.Retryable:
		return Refused
	case e.Kind == KindUnavailable:
		return Unknown
	case e.Is(ErrKeyInProgress):
		return InProgress
	}
	return RefusedForNow
}

// Unwrap returns the cause, which must never be shown to a client.
func (e *Error) Unwrap() error { return e.cause }

// Is matches errors by their code, so errors.Is(err, ErrKeyReused) works.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// The two verdicts of the authority on a key that is already taken. Both leave the taken key as it
// is.
var (
	ErrKeyReused = &Error{Kind: KindUnprocessable, Code: "idempotency_key_reused", Retryable: true,
		Message: "Idempotency key has already been used with a different request payload."}
	ErrKeyInProgress = &Error{Kind: KindConflict, Code: "idempotency_in_progress", Retryable: true, RetryAfter: time.Second,
		Message: "A request with this idempotency key is already being processed. Retry after the original request completes."}
)

// KeyInProgressSince is [ErrKeyInProgress] of a request that has been running since then.
func KeyInProgressSince(since time.Time) *Error {
	e := *ErrKeyInProgress
	e.Since = since
	return &e
}

// ErrNewerAttemptRefused stops an older copy of a request whose newest copy was refused: the
// refusal said that nothing was done.
var ErrNewerAttemptRefused = &Error{Kind: KindConflict, Code: "newer_attempt_refused", Retryable: true,
	Message: "Another copy of this request, or a newer one with its idempotency key, was refused, so this one was not executed. Send it again if it is still wanted."}

// ExpiredKey answers the same request after its answer has expired. The resource is the path of
// what the key led to; it may be empty.
func ExpiredKey(resource string) *Error {
	return &Error{Kind: KindConflict, Code: "idempotency_key_expired", Retryable: true, Resource: resource,
		Message: "This idempotency key was used before, and the answer is no longer kept. Nothing was done again."}
}

// ErrKeyNotFound says that the authority knows nothing of a key in the account.
var ErrKeyNotFound = &Error{Kind: KindNotFound, Code: "idempotency_key_not_found", Retryable: true,
	Message: "Nothing is known of this idempotency key in this account."}

// ErrUnauthorized is the answer to an unknown or revoked API key.
var ErrUnauthorized = &Error{Kind: KindUnauthorized, Code: "unauthorized", Retryable: true,
	Message: "The API key is missing, unknown or revoked."}

// RetryHint is how long a client should wait after a 503. It is long enough for a failover to be
// noticed, and short enough that a shopper is still there.
const RetryHint = 2 * time.Second

// Unavailable reports that a dependency is away or too slow. What the command did is unknown to the
// client until it retries with the same key.
func Unavailable(doing string, cause error) *Error {
	return &Error{Kind: KindUnavailable, Code: "service_unavailable", Retryable: true, RetryAfter: RetryHint,
		Message: "The service is temporarily unavailable. Retry with the same idempotency key.",
		cause:   fmt.Errorf("%s: %w", doing, cause)}
}

// outcomeUnknown reports that the provider did not say whether it moved the money. It is never a
// failure: the payment stays processing.
func outcomeUnknown(what string, cause error) *Error {
	return &Error{Kind: KindUnavailable, Code: what + "_outcome_unknown", Retryable: true, RetryAfter: RetryHint,
		Message: "The payment provider has not confirmed the outcome yet. Retry with the same idempotency key.",
		cause:   cause}
}

// invalid is a request that breaks a rule by itself, whatever is stored.
func invalid(code, format string, args ...any) *Error {
	return &Error{Kind: KindInvalid, Code: code, Message: fmt.Sprintf(format, args...), Retryable: true}
}

// NotFound says that the account has no such resource. It is not kept under the key: identifiers
// are minted here, so an unknown one stays unknown.
func NotFound(resource string) *Error {
	return &Error{Kind: KindNotFound, Code: resource + "_not_found", Retryable: true,
		Message: "There is no such " + resource + " in this account."}
}

func conflict(code, format string, args ...any) *Error {
	return &Error{Kind: KindConflict, Code: code, Message: fmt.Sprintf(format, args...)}
}

func unprocessable(code, format string, args ...any) *Error {
	return &Error{Kind: KindUnprocessable, Code: code, Message: fmt.Sprintf(format, args...)}
}
