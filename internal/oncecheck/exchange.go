package oncecheck

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httputil"
	"strings"
	"time"
)

// Exchange is one request on the wire, and its answer.
type Exchange struct {
	Note     string        `json:"note"` // why it was sent
	Request  string        `json:"request"`
	Response string        `json:"response,omitempty"`
	Error    string        `json:"error,omitempty"` // why there is no whole answer
	Sent     time.Duration `json:"sent"`            // nanoseconds since the run began
	Answered time.Duration `json:"answered"`

	rule   string // in which it was sent
	status int    // 0: no whole answer
	header http.Header
	body   string
}

// kept are the headers that a replay has to repeat, if the first answer has them.
var kept = []string{"Content-Type", "Location", "Etag"}

// difference says what is different in the other answer, in its status, its body or the headers in
// kept; or nothing.
func (e Exchange) difference(other Exchange) string {
	switch {
	case other.status == 0:
		return "there was no whole answer: " + other.Error
	case e.status != other.status:
		return fmt.Sprintf("the status was %d and then %d", e.status, other.status)
	case e.body != other.body:
		return "the body was another one"
	}
	for _, name := range kept {
		if e.header.Get(name) != other.header.Get(name) {
			return fmt.Sprintf("the header %s was %q and then %q", name, e.header.Get(name), other.header.Get(name))
		}
	}
	return ""
}

func (e Exchange) succeeded() bool { return e.status/100 == 2 }

// refused reports whether the answer says that the client has to change something.
func (e Exchange) refused() bool { return e.status/100 == 4 }

// busy reports whether the answer asks for a retry, as idempotency/transport understands it.
func (e Exchange) busy() bool {
	switch e.status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests,
		http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return e.status == http.StatusConflict && (e.header.Get("Retry-After") != "" || strings.Contains(e.body, "progress"))
}

// repeatable reports whether a client that knows no dialect but ours repeats the request: not after
// a 409 that only says in words that it is in progress.
func (e Exchange) repeatable() bool {
	return e.busy() && (e.status != http.StatusConflict || e.header.Get("Retry-After") != "" || e.member("code") == "idempotency_in_progress")
}

// told is the answer in a few words.
func (e Exchange) told() string {
	if e.status == 0 {
		return "no answer"
	}
	return fmt.Sprintf("%d %s", e.status, http.StatusText(e.status))
}

// secrets are headers whose values no report has.
var secrets = []string{"Authorization", "Cookie", "Proxy-Authorization", "X-Api-Key", "Api-Key"}

// wire is the request as it is sent, without secrets and with CRLF as line ends.
func wire(r *http.Request, body string) string {
	shown := r.Clone(r.Context())
	shown.Body, shown.ContentLength = http.NoBody, 0
	for _, name := range secrets {
		if shown.Header.Get(name) != "" {
			shown.Header.Set(name, "(not shown)")
		}
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s %s HTTP/1.1\r\nHost: %s\r\n", r.Method, r.URL.RequestURI(), r.Host)
	_ = shown.Header.Write(&out) // a buffer takes everything
	fmt.Fprintf(&out, "Content-Length: %d\r\n\r\n%s", len(body), body)
	return out.String()
}

// wireAnswer is the answer as it came, with the body that was read.
func wireAnswer(r *http.Response, body string) string {
	head, err := httputil.DumpResponse(r, false)
	if err != nil {
		return ""
	}
	return string(head) + body
}
