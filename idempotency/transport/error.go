package transport

import (
	"fmt"
	"net/http"

	"github.com/oncepay/oncepay/idempotency"
)

// Error says that there is no whole answer to a request with a key: whether it was executed is not
// known. The same request with the same key has no second effect. A [Transport] returns it from
// RoundTrip and from Read of a response's body, to be found with [errors.As].
type Error struct {
	Key string // of the request
	Err error  // the cause, such as io.ErrUnexpectedEOF
}

// Error implements error.
func (e *Error) Error() string {
	return "idempotency: request with key " + e.Key + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// errorOf is an [Error] if the request has a key, or follows the redirect of one that has. The key
// is that of the caller's own request: repeating this one repeats those that it is redirected to,
// if it is redirected to the same URLs.
func errorOf(r *http.Request, err error) error {
	first := origin(r)
	if !hasKey(first) {
		return fmt.Errorf("idempotency: %w", err)
	}
	return &Error{first.Header.Get(idempotency.HeaderKey), err}
}

// origin is the request whose redirects an [http.Client] follows, as it was sent.
func origin(r *http.Request) *http.Request {
	for r.Response != nil && r.Response.Request != nil {
		r = r.Response.Request
	}
	return r
}
