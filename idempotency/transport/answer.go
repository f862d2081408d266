package transport

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/oncepay/oncepay/idempotency"
)

const (
	// problemSize is how much of a 409 is read at least, to find its code; problems have a
	// few hundred bytes.
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
	err        error          // there is no answer, or no whole one
	fatal      bool           // a retry would fail in the same way
	inProgress bool           // a 409 idempotency_in_progress
	content    io.Reader      // of the body, if some of it has been read
	retryIf    func(*http.Response) bool
	cancel     context.CancelCauseFunc
}

// retryReason returns whether the request may be sent again, and why in words.
func (a *answer) retryReason(ctx context.Context) (reason string, again bool) {
	switch {
	case a.err != nil && (a.fatal || ctx.Err() != nil || isPermanent(a.err)):
		return "", false
	case a.err != nil:
		return a.err.Error(), true
	}
	code := a.response.StatusCode
	return fmt.Sprintf("%d %s", code, http.StatusText(code)), a.asksToRepeat()
}

func isPermanent(err error) bool {
	var untrusted *tls.CertificateVerificationError
	var noTLS tls.RecordHeaderError
	var address *net.AddrError // such as an invalid port
	return errors.As(err, &untrusted) || errors.As(err, &noTLS) || errors.As(err, &address)
}

// asksToRepeat reports whether the answer's status allows a retry.
func (a *answer) asksToRepeat() bool {
	switch a.response.StatusCode {
	case http.StatusConflict:
		return a.inProgress || a.response.Header.Get("Retry-After") != ""
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return a.retryIf != nil && a.retryIf(a.response)
}

// result is the last answer in the form that RoundTrip returns.
func (a *answer) result(r *http.Request, attempts int) (*http.Response, error) {
	if a.err != nil {
		return nil, errorOf(r, fmt.Errorf("attempt %d: %w", attempts, a.err))
	}
	return a.response, nil
}

// read reads the body up to the limit, and leaves it unread for the caller. If the body breaks off
// there is no answer. The body of an answer that is repeated anyway is not needed, except that of a
// 409: it says of which kind the conflict is.
func (a *answer) read(limit int64) {
	conflict := a.response.StatusCode == http.StatusConflict
	if conflict {
		limit = max(limit, problemSize)
	}
	if !conflict && a.asksToRepeat() || a.isPassedOn(limit) {
		return
	}
	body, data := a.response.Body, &bytes.Buffer{}
	data.Grow(int(max(a.response.ContentLength, 0)) + bytes.MinRead)
	if _, err := data.ReadFrom(io.LimitReader(body, min(limit, math.MaxInt64-1)+1)); err != nil {
		a.fail(fmt.Errorf("read the answer: %w", err))
		return
	}
	a.inProgress = conflict && codeOf(data.Bytes()) == idempotency.CodeInProgress
	a.content = data
	if int64(data.Len()) > limit {
		a.content = io.MultiReader(data, body)
	}
}

func codeOf(body []byte) string {
	var problem struct {
		Code string `json:"code"`
	}
	_ = json.Unmarshal(body, &problem) // what is no problem has no code
	return problem.Code
}

// isPassedOn reports whether the body is passed on unread. That of a 101 is the connection.
func (a *answer) isPassedOn(limit int64) bool {
	_, isConnection := a.response.Body.(io.Writer)
	mediaType, _, _ := strings.Cut(a.response.Header.Get("Content-Type"), ";")
	return limit < 0 || isConnection || a.response.Body == http.NoBody || a.response.ContentLength > limit ||
		strings.EqualFold(strings.TrimSpace(mediaType), "text/event-stream")
}

// fail makes the attempt one without an answer.
func (a *answer) fail(err error) {
	a.discard()
	a.response, a.err = nil, err
}

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

// bind makes the attempt's context end when the response's body is closed, and an error in the body
// say the key of the request. The body of a 101 is the connection itself: wrapping it would hide
// its Write.
func (a *answer) bind(r *http.Request) {
	if a.err != nil {
		a.cancel(nil)
		return
	}
	body := a.response.Body
	if _, isConnection := body.(io.Writer); isConnection {
		return
	}
	if a.content == nil {
		a.content = body
	}
	a.response.Body = &answerBody{a.content, body, a.cancel, r}
}

type answerBody struct {
	io.Reader
	io.Closer
	cancel  context.CancelCauseFunc
	request *http.Request
}

// Read returns an [Error] if the body breaks off.
func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // io.Reader returns io.EOF itself
		err = errorOf(b.request, err)
	}
	return n, err
}

// Close closes the body and ends the attempt's context.
func (b *answerBody) Close() error {
	defer b.cancel(nil)
	return b.Closer.Close()
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
