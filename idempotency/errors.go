package idempotency

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"
)

// Errors of a [Store], to be tested with errors.Is.
var (
	// ErrLost says that the record is not this owner's, or no longer: its lease ended and
	// another owner took the key over, or it was removed.
	ErrLost = errors.New("idempotency: the record belongs to another owner")
	// ErrUnavailable says that the store cannot answer now: network, timeout, out of memory,
	// read-only or still loading. It wraps the cause. The step may or may not have been
	// taken.
	ErrUnavailable = errors.New("idempotency: store unavailable")
	// ErrNotSent is an ErrUnavailable of a step that was not sent to the store, for example
	// because a circuit breaker is open: it was certainly not taken.
	ErrNotSent = fmt.Errorf("%w: not sent", ErrUnavailable)
	// ErrCorrupt says that the bytes under the key are not a record. The middleware treats
	// that key as unavailable, unless it can be repaired, see [Policy].Authority.
	ErrCorrupt = errors.New("idempotency: not a record")
	// ErrSecondOperation is of [Claim.Operate], and not of a Store.
	ErrSecondOperation = errors.New("idempotency: one claim is for one operation: another one under it was executed, or is running. " +
		"Send each part of a batch through the middleware with a key of its own")
)

// Errors to compare an [Error] with by errors.Is, which looks at the code alone.
var (
	ErrInProgress      error = InProgress(0)
	ErrKeyReused       error = KeyReused()
	ErrResponseNotKept error = &Error{Code: CodeResponseNotKept, Message: "The response is not kept."}
)

// Codes of the answers that the middleware writes itself.
const (
	CodeKeyMissing       = "idempotency_key_missing"
	CodeKeyTooLong       = "idempotency_key_too_long"
	CodeKeyMalformed     = "idempotency_key_malformed"
	CodeInProgress       = "idempotency_in_progress"
	CodeKeyReused        = "idempotency_key_reused"
	CodeStoreUnavailable = "idempotency_store_unavailable"
	CodeResponseNotKept  = "idempotency_response_not_kept"
	CodeRequestTimeout   = "request_timeout"
	CodeScopeMissing     = "idempotency_scope_missing"
	CodeBodyTooLarge     = "body_too_large"
	CodeBodyUnreadable   = "body_unreadable"
	CodeBodyConsumed     = "body_consumed"
)

// Error is an answer of the middleware instead of the handler's. Code and Message are safe to
// show to a client; Err, the cause, is only for the log.
type Error struct {
	Status     int           // HTTP status code
	Code       string        // one of the Code constants
	Message    string        // one sentence for people
	RetryAfter time.Duration // 0: no Retry-After header
	Err        error         // the cause, or nil
}

// Error implements error.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Code + ": " + e.Message
	}
	return e.Code + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is an [Error] with the same code.
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Code == e.Code
}

// InProgress is the 409 for a key that is not decided: a request with it, this one or another, is
// still running. A handler whose database says so answers with the same error, and calls
// [Claim.Release].
func InProgress(retryAfter time.Duration) *Error {
	return &Error{
		Status: http.StatusConflict, Code: CodeInProgress, RetryAfter: retryAfter,
		Message: "A request with this idempotency key is already being processed. Retry after the original request completes.",
	}
}

// KeyReused is the 422 for a key under which another request's answer is kept. It is final: while
// the other request is in progress the answer is [InProgress], because that request may yet be
// refused and leave the key free. A handler whose database says so answers with the same error,
// and calls [Claim.Release].
func KeyReused() *Error {
	return &Error{
		Status: http.StatusUnprocessableEntity, Code: CodeKeyReused,
		Message: "Idempotency key has already been used with a different request payload.",
	}
}

// scopeMissing answers a caller whom nobody has authenticated: it would get the answers of others.
// Only the error writer can add WWW-Authenticate.
func scopeMissing() *Error {
	return &Error{
		Status: http.StatusUnauthorized, Code: CodeScopeMissing,
		Message: "The caller of this request must be known, so the request was not executed.",
		Err: errors.New("the scope of the request is empty: put the idempotency middleware inside authentication, " +
			"or use WithSharedScope if there is a single client"),
	}
}

func storeUnavailable(cause error) *Error {
	return &Error{
		Status: http.StatusServiceUnavailable, Code: CodeStoreUnavailable, RetryAfter: unavailableRetryAfter, Err: cause,
		Message: "Idempotency cannot be guaranteed at the moment, so this attempt was not executed. Retry later with the same key.",
	}
}

// noAnswer answers for a handler whose context ended before it had written anything.
func noAnswer(cause error) *Error {
	return &Error{
		Status: http.StatusServiceUnavailable, Code: CodeRequestTimeout, RetryAfter: unavailableRetryAfter, Err: cause,
		Message: "The request was not answered in time, and may have been executed. Retry with the same key.",
	}
}

// responseNotKept answers a retry whose first answer was too large to keep, or written by others.
// It is a 409 without Retry-After: after a 5xx or a Retry-After clients would try again forever,
// and the handler must not run a second time.
func responseNotKept(first Response) *Error {
	return &Error{
		Status: http.StatusConflict, Code: CodeResponseNotKept,
		Message: "The original request was completed with status " + strconv.Itoa(first.StatusCode) +
			", but its response could not be kept and cannot be replayed.",
	}
}

// notAccepted answers a retry that cannot read the encoding in which the handler wrote the answer.
func notAccepted(first Response) *Error {
	return &Error{
		Status: http.StatusConflict, Code: CodeResponseNotKept,
		Message: "The original request was completed with status " + strconv.Itoa(first.StatusCode) +
			", but its response has an encoding that this request does not accept: " + first.Header.Get("Content-Encoding"),
	}
}

// WriteProblem is the default error writer: application/problem+json (RFC 9457) with the
// members type, title, status, detail, code and error, and a Retry-After header in whole
// seconds if the error has one.
func WriteProblem(w http.ResponseWriter, _ *http.Request, e *Error) {
	writeJSON(w, "application/problem+json", e, map[string]any{
		"type": "about:blank", "title": http.StatusText(e.Status), "status": e.Status,
		"detail": e.Message, "code": e.Code, "error": e.Message,
	})
}

// writeJSON writes an error's answer with a body of strings and integers.
func writeJSON(w http.ResponseWriter, mediaType string, e *Error, members map[string]any) {
	body, err := json.Marshal(members)
	if err != nil { // strings and integers always marshal
		panic(err)
	}
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(wholeSeconds(e.RetryAfter)))
	}
	w.Header().Set("Content-Type", mediaType)
	w.WriteHeader(e.Status)
	_, _ = w.Write(append(body, '\n')) // the client may be gone
}

// wholeSeconds rounds up, so that a client that waits so long is not early.
func wholeSeconds(d time.Duration) int {
	return int(math.Ceil(d.Seconds()))
}
