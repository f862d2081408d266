package idempotency

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
)

const (
	// problemSize is how much of a 409 is read to find its code; problems are a
	// few hundred bytes.
	problemSize = 16 << 10
	// drainSize and drainTimeout bound what is read of a response that nobody
	// wants, to use its connection again. A new one is cheaper than more.
	drainSize    = 64 << 10
	drainTimeout = time.Second
	// endless is longer than any budget, and can be added to.
	endless = 100 * 365 * 24 * time.Hour
)

// answer is what an attempt brought.
type answer struct {
	response   *http.Response // nil with err
	err        error
	fatal      bool // it can't be otherwise another time
	inProgress bool // a 409 that says so
	cancel     context.CancelCauseFunc
}

// retryReason says in words why the same request may be sent again, if it may.
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

// result is the last answer, as RoundTrip returns it.
func (a *answer) result(attempts int) (*http.Response, error) {
	if a.err != nil {
		return nil, fmt.Errorf("idempotency: attempt %d: %w", attempts, a.err)
	}
	return a.response, nil
}

// readProblem looks for the code of a 409, and puts back what it has read.
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
	a.inProgress = json.Unmarshal(read, &problem) == nil && problem.Code == CodeInProgress
}

// failedReader gives an error once more, to the one whom it concerns.
type failedReader struct{ err error }

func (f failedReader) Read([]byte) (int, error) { return 0, f.err }

// discard drains and closes a response, so that its connection can be used
// again, and frees what the attempt held.
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

// bindContext has the attempt's context end with the response's body. A 101's
// body is the connection itself, of which we must not hide the other half.
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

// pauseAfter is full jitter over an exponential backoff, unless the server says
// when. Then it is that and a little more, so that those who were told the same
// don't come back together.
func (t *Transport) pauseAfter(attempt int, response *http.Response) time.Duration {
	most := orDefault(t.MaxDelay, DefaultMaxDelay)
	delay := min(orDefault(t.BaseDelay, DefaultBaseDelay), most)
	if told, ok := t.retryAfter(response); ok {
		return told + t.part(delay)
	}
	for range attempt - 1 {
		delay = min(2*delay, most) // step by step: a shift would overflow
	}
	return t.part(delay)
}

func (t *Transport) part(d time.Duration) time.Duration {
	return time.Duration(t.random() * float64(d))
}

// retryAfter reads Retry-After (RFC 9110, section 10.2.3): seconds, or a date,
// which is taken relative to the response's own Date, as clocks differ.
func (t *Transport) retryAfter(response *http.Response) (time.Duration, bool) {
	if response == nil {
		return 0, false
	}
	value := response.Header.Get("Retry-After")
	seconds, err := strconv.ParseUint(value, 10, 31)
	if err == nil || errors.Is(err, strconv.ErrRange) { // which gives the most
		return time.Duration(seconds) * time.Second, true
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	from, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		from = t.now()
	}
	return min(max(at.Sub(from), 0), endless), true
}
