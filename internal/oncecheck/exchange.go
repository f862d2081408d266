package oncecheck

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httputil"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// Exchange is one request on the wire, and its answer.
type Exchange struct {
	Note     string        `json:"note"` // why it was sent
	Request  string        `json:"request"`
	Response string        `json:"response,omitempty"`
	Error    string        `json:"error,omitempty"` // why there is no whole answer
	Sent     time.Duration `json:"sent"`            // nanoseconds since the run began
	Answered time.Duration `json:"answered"`

	status int // 0: no whole answer
	header http.Header
	body   string
}

// way is how a request gets to the server, as in [http.RoundTripper]: a redirect is an answer like
// any other.
type way func(*http.Request) (*http.Response, error)

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 1 << 20

// over sends the request, and reads the whole answer.
func (e *Exchange) over(ctx context.Context, r Request, by way) error {
	q, err := http.NewRequestWithContext(ctx, r.Method, r.URL, strings.NewReader(r.Body))
	if err != nil {
		return err
	}
	q.Header = r.Header.Clone()
	q.Host = q.Header.Get("Host") // or the URL's
	e.Request = wire(q, r.Body)
	answer, err := by(q)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	e.body, e.status, e.header = string(body), answer.StatusCode, answer.Header
	head, _ := httputil.DumpResponse(answer, false) // a buffer takes everything
	e.Response = string(head) + e.body
	return err
}

// secrets are headers whose values no report has.
var secrets = []string{"Authorization", "Cookie", "Proxy-Authorization", "X-Api-Key", "Api-Key"}

// wire is the request as it is sent, without secrets.
func wire(q *http.Request, body string) string {
	shown := q.Clone(q.Context())
	shown.Header.Set("Content-Length", strconv.Itoa(len(body)))
	for _, name := range secrets {
		if shown.Header.Get(name) != "" {
			shown.Header.Set(name, "(not shown)")
		}
	}
	head, _ := httputil.DumpRequest(shown, false)
	return string(head) + body
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

// busy reports whether the answer asks for a retry, if only in words.
func (e Exchange) busy() bool {
	switch e.status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests,
		http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return e.status == http.StatusConflict && (e.header.Get("Retry-After") != "" || strings.Contains(e.body, "progress"))
}

// unanswered reports whether the client does not know more than before.
func (e Exchange) unanswered() bool { return e.status == 0 || e.busy() }

// undecided is unanswered for a request that may be executed now: a 409 is no answer to it, whether
// or not it asks for a retry.
func (e Exchange) undecided() bool { return e.unanswered() || e.status == http.StatusConflict }

// retryAfter is how long the answer asks to wait, in whole seconds.
func (e Exchange) retryAfter() (time.Duration, bool) {
	seconds, err := strconv.Atoi(e.header.Get("Retry-After"))
	return time.Duration(seconds) * time.Second, err == nil
}

// replays is how servers mark a replay: by X-Idempotent-Replay, Idempotency-Replayed,
// X-Idempotency-Cached, X-Cache-Hit or the like.
var replays = regexp.MustCompile("(?i)(idempoten|cache-hit).*: true$")

// replayMark is the header that marks a replay, as "Name: value"; empty without one.
func (e Exchange) replayMark() string {
	for _, name := range slices.Sorted(maps.Keys(e.header)) {
		if line := name + ": " + e.header.Get(name); replays.MatchString(line) {
			return line
		}
	}
	return ""
}

// member is the text at a path of the JSON body, or none.
func (e Exchange) member(path string) string { return gjson.Get(e.body, path).Str }

// told is the answer in a few words.
func (e Exchange) told() string {
	if e.status == 0 {
		return "no answer"
	}
	return fmt.Sprintf("%d %s", e.status, http.StatusText(e.status))
}
