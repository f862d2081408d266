package idempotency

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strconv"
)

// errBodyConsumed says that middleware further out has read the request's body.
var errBodyConsumed = errors.New("the request's body was read before the idempotency middleware; " +
	"middleware that reads it must put a copy back, and set ContentLength to 0 if the copy is empty")

// readBody reads the body and puts an unread copy in its place.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		if isConsumed(r, nil) {
			return nil, errBodyConsumed
		}
		return nil, nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err != nil {
		return nil, err
	}
	if isConsumed(r, body) {
		return nil, errBodyConsumed
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, nil
}

// isConsumed reports whether something read the body before: nothing is left of one that has a
// length, or a type and no length, or less than its length of the server's own. One that was
// replaced, and is shorter than its length, may have been decoded.
func isConsumed(r *http.Request, body []byte) bool {
	if r.ContentLength < 0 {
		return len(body) == 0 && len(r.Header["Content-Type"]) > 0
	}
	return int64(len(body)) < r.ContentLength && (len(body) == 0 || isOfServer(r.Body))
}

// isOfServer reports whether a body is the one that net/http made, for HTTP/1 or HTTP/2.
func isOfServer(body io.ReadCloser) bool {
	switch reflect.TypeOf(body).String() {
	case "*http.body", "*http.http2requestBody", "*http2.requestBody":
		return true
	}
	return false
}

func bodyError(err error) *Error {
	if errors.Is(err, errBodyConsumed) {
		return &Error{
			Status: http.StatusInternalServerError, Code: CodeBodyConsumed, Err: err,
			Message: "The server could not read the request body, so the request was not executed.",
		}
	}
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return &Error{
			Status: http.StatusRequestEntityTooLarge, Code: CodeBodyTooLarge, Err: err,
			Message: "Request body must not exceed " + strconv.FormatInt(tooLarge.Limit, 10) + " bytes",
		}
	}
	return &Error{Status: http.StatusBadRequest, Code: CodeBodyUnreadable, Message: "Request body could not be read", Err: err}
}
