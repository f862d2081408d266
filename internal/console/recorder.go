package console

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"
)

// answerTimeout is longer than nginx waits for a payment: the server has to give up first.
const answerTimeout = 100 * time.Second

// label says who sends a request and what it is, for the journal. A request without a label is a
// look at the books and is not drawn.
type label struct{ by, what string }

type labelKey struct{}

func labelled(ctx context.Context, by, what string) context.Context {
	return context.WithValue(ctx, labelKey{}, label{by, what})
}

// recorder notes each request in the journal, and makes it belong to a trace.
type recorder struct {
	journal *journal
	doors   map[string]string // names by host
	base    http.RoundTripper
}

// RoundTrip implements [http.RoundTripper]. The body of the answer is read before it returns.
func (t recorder) RoundTrip(r *http.Request) (*http.Response, error) {
	l, ok := r.Context().Value(labelKey{}).(label)
	if !ok {
		return t.base.RoundTrip(r)
	}
	a := t.journal.begin(attempt{By: l.by, What: l.what, Key: r.Header.Get("Idempotency-Key"), Door: t.doors[r.URL.Host]})
	r = r.Clone(r.Context())
	r.Header.Set("Traceparent", "00-"+a.Trace+"-"+a.Trace[:16]+"-01")
	resp, err := t.base.RoundTrip(r)
	if err == nil {
		a.answer, err = readAnswer(resp)
		_ = resp.Body.Close()
	}
	if err != nil {
		a.Error = err.Error()
		t.journal.end(a)
		return nil, err
	}
	t.journal.end(a)
	resp.Body = io.NopCloser(bytes.NewReader(a.Body))
	return resp, nil
}
