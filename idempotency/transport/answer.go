package transport

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/oncepay/oncepay/idempotency"
)

const (
	// problemSize is how much of a 409 is read to find its code; problems have a few
	// hundred bytes.
	problemSize = 16 << 10
	// drainSize and drainTimeout limit how much of an unwanted response is read so that its
	// connection can be used again. Beyond them a new connection is cheaper.
	drainSize    = 64 << 10
	drainTimeout = time.Second
	// longest is longer than any budget, and adding to it does not overflow.
	longest = 100 * 365 * 24 * time.Hour
)

// answer is the result of one attempt.
type answer struct {
	response   *http.Response // nil if err is set
	err        error
	fatal      bool // a retry would fail in the same way
	inProgress bool // a 409 idempotency_in_progress
	cancel     context.CancelCauseFunc
}

// retryReason returns whether the request may be sent again, and why in words.
func (a *answer) retryReason(ctx context.Context) (reason string, again bool) {
	var untrusted *tls.CertificateVerificationError
	switch {
	case a.err != nil && (a.fatal || ctx.Err() != nil || errors.As(a.err, &untrusted)):
		return "", false
	case a.err != nil:
		return a.err.Error(), true
	}
	code := a.response.StatusCode
	switch code {
	case http.StatusConflict:
		again = a.inProgress || a.response.Header.Get("Retry-After") != ""
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		again = true
	}
	return fmt.Sprintf("%d %s", code, http.StatusText(code)), again
}

// result is the last answer in the form that RoundTrip returns.
func (a *answer) result(attempts int) (*http.Response, error) {
	if a.err != nil {
		return nil, fmt.Errorf("idempotency: attempt %d: %w", attempts, a.err)
	}
	return a.response, nil
}

// readProblem reads the code of a 409, and leaves the body unread for the caller.
func (a *answer) readProblem() {
	if a.err != nil || a.response.StatusCode != http.StatusConflict {
		return
	}
	body := a.response.Body
	read, err := io.ReadAll(io.LimitReader(body, problemSize))
	rest := io.Reader(body)
	if err != nil {
		rest = failedReader{err}
	}
	a.response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(read), rest), body}
	var problem struct {
		Code string `json:"code"`
	}
	a.inProgress = json.Unmarshal(read, &problem) == nil && problem.Code == idempotency.CodeInProgress
}

// failedReader returns an earlier error of the body to the caller that reads it.
type failedReader struct{ err error }

func (f failedReader) Read([]byte) (int, error) { return 0, f.err }

// discard drains and closes the response, so that its connection can be used again, and
// releases the resources of the attempt.
func (a *answer) discard() {
	defer a.cancel(nil)
	if a.response == nil {
		return
	}
	timer := time.AfterFunc(drainTimeout, func() { a.cancel(nil) })
	defer timer.Stop()
	_, _ = io.CopyN(io.Discard, a.response.Body, drainSize)
	_ = a.response.Body.Close()
}

// bindContext makes the attempt's context end when the response's body is closed. The body
// of a 101 is the connection itself: wrapping it would hide its Write.
func (a *answer) bindContext() {
	if a.err != nil {
		a.cancel(nil)
		return
	}
	if _, isConnection := a.response.Body.(io.Writer); !isConnection {
		a.response.Body = &answerBody{a.response.Body, a.cancel}
	}
}

type answerBody struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

// Close closes the body and ends the attempt's context.
func (b *answerBody) Close() error {
	defer b.cancel(nil)
	return b.ReadCloser.Close()
}

// retryAfter reads Retry-After (RFC 9110, section 10.2.3): seconds, or a date. A date is
// compared with the response's own Date, because clocks differ.
func retryAfter(response *http.Response) (time.Duration, bool) {
	if response == nil {
		return 0, false
	}
	value := response.Header.Get("Retry-After")
	seconds, err := strconv.ParseUint(value, 10, 31)
	if err == nil || errors.Is(err, strconv.ErrRange) { // on ErrRange, seconds is the maximum
		return time.Duration(seconds) * time.Second, true
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	from, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		from = time.Now()
	}
	return min(max(at.Sub(from), 0), longest), true
}
