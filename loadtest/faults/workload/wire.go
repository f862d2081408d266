// Package workload makes the requests of a campaign: clients that shop, retry by
// idempotency/transport, race each other, and come back later, with every attempt in the journal.
package workload

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/transport"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/shop"
)

const (
	// answerTimeout is what an impatient shop waits: longer than the provider is given, shorter
	// than a pause.
	answerTimeout = 6 * time.Second
	// firstPause and longestPause bound the random pauses between attempts.
	firstPause, longestPause = 100 * time.Millisecond, 2 * time.Second
	// budget is when a client gives up on a request, and leaves it to Finish. Nothing but time ends
	// its attempts.
	budget, unlimited = 25 * time.Second, 1_000_000
)

// The endpoints that a request can take.
const nginx, api1, api2 = "nginx", "api-1", "api-2"

var endpoints = []string{api1, api2, nginx}

// otherThan has for each replica the other one.
var otherThan = map[string]string{api1: api2, api2: api1}

// Request is one logical request; its attempts share the key.
type Request struct {
	// Attempt is what the journal has of each attempt beforehand. Without a key it is sent only
	// once. Via is for the first attempt; empty: nginx mostly.
	journal.Attempt

	Path, Method string // no method: POST
	Body         []byte
	Prefer       string        // the header of that name (RFC 7240), such as wait=2
	Patience     time.Duration // until an attempt is given up; 0: answerTimeout
	Leaves       bool          // its client sends it once and does not ask again, whatever the answer
	Pipelined    bool          // more than 4 KiB follow it on its connection
	Start        time.Time     // when a proxy read it, as that says to a replica; zero: there is no proxy
}

// fingerprint names the meaning: the path, the condition and the body.
func (r Request) fingerprint() string {
	return fmt.Sprintf("%.4x", sha256.Sum256(append([]byte(r.Path+r.ifMatch()+"\n"), r.Body...)))
}

// ifMatch is the header of that name.
func (r Request) ifMatch() string {
	if r.Change == nil || r.Change.IfMatch == 0 {
		return ""
	}
	return fmt.Sprintf("%q", fmt.Sprint(r.Change.IfMatch))
}

// Wire sends requests and journals them. Safe for concurrent use.
type Wire struct {
	Endpoints map[string]string // base URLs by name: nginx, api-1, api-2; all http
	Journal   *journal.Writer
	Began     time.Time

	pool    *http.Transport
	follows *http.Transport // for what is pipelined
	sent    atomic.Int64    // attempts so far
}

// NewWire makes a wire whose clock begins now.
func NewWire(endpoints map[string]string, j *journal.Writer) *Wire {
	follows := &http.Transport{DisableKeepAlives: true, DialContext: dialPipelining}
	return &Wire{Endpoints: endpoints, Journal: j, Began: time.Now(), pool: shop.Connections(), follows: follows}
}

// pipelining is a connection on which another request follows each: longer than the 4 KiB that
// net/http reads ahead.
type pipelining struct{ net.Conn }

var next = fmt.Sprintf("POST /v1/orders HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%[1]*s", 8<<10, "")

func dialPipelining(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	return pipelining{conn}, err
}

// Write writes a whole request: it is shorter than the buffer of [http.Transport].
func (c pipelining) Write(request []byte) (int, error) {
	n, err := c.Conn.Write(append(slices.Clone(request), next...))
	return min(n, len(request)), err
}

// Close closes the idle connections.
func (w *Wire) Close() { w.pool.CloseIdleConnections() }

// Call repeats a request until it is answered for good, and returns the last attempt. Unless it has
// a Start, the next attempts go wherever they get through.
func (w *Wire) Call(ctx context.Context, r Request) journal.Attempt {
	patience := cmp.Or(r.Patience, answerTimeout)
	at := &recorder{wire: w, request: r}
	return at.send(ctx, max(budget, 2*r.Patience), &transport.Transport{
		Base: at, MaxAttempts: unlimited, MaxElapsed: max(budget, patience), AttemptTimeout: patience,
		BaseDelay: firstPause, MaxDelay: longestPause,
	})
}

// Once makes one attempt, and calls it by this number.
func (w *Wire) Once(ctx context.Context, r Request, number int) journal.Attempt {
	at := &recorder{wire: w, request: r, number: number - 1}
	return at.send(ctx, cmp.Or(r.Patience, answerTimeout), at)
}

// LookUp asks once what became of the request with a key.
func (w *Wire) LookUp(ctx context.Context, r Request, via string) {
	asks := journal.Attempt{Account: r.Account, Key: r.Key, Operation: "look-up", Client: r.Client, Via: via, Purpose: r.Purpose, LookUp: &journal.LookUp{}}
	w.Once(ctx, Request{Attempt: asks, Path: "/idempotency-keys/" + url.PathEscape(r.Key), Method: http.MethodGet}, 1)
}

// recorder sends the attempts of one request: it chooses an endpoint for each, and enters it in the
// journal with the whole answer. It reads bodies to their end, so that an attempt's timeout covers
// them, too.
type recorder struct {
	wire    *Wire
	request Request
	number  int // of the attempts so far
	last    journal.Attempt
}

// send has a sender make the attempts, each of which is a RoundTrip.
func (c *recorder) send(ctx context.Context, longest time.Duration, sender http.RoundTripper) journal.Attempt {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	r := c.request
	q, err := http.NewRequestWithContext(ctx, cmp.Or(r.Method, http.MethodPost), "http://endpoint/v1"+r.Path, bytes.NewReader(r.Body))
	if err != nil {
		panic(err) // our own methods and paths
	}
	q.Header = http.Header{"Authorization": {"Bearer " + r.Account}, "Content-Type": {"application/json"}}
	for name, value := range map[string]string{idempotency.HeaderKey: r.Key, "Prefer": r.Prefer, "If-Match": r.ifMatch()} {
		if value != "" && r.LookUp == nil {
			q.Header.Set(name, value)
		}
	}
	if !r.Start.IsZero() {
		q.Header.Set("X-Request-Start", fmt.Sprintf("t=%.3f", float64(r.Start.UnixMilli())/1000))
	}
	if answer, err := sender.RoundTrip(q); err == nil { // what it says is in the journal either way
		_ = answer.Body.Close()
	}
	return c.last
}

// RoundTrip makes one attempt.
func (c *recorder) RoundTrip(q *http.Request) (*http.Response, error) {
	c.number++
	r, w := c.request, c.wire
	a := r.Attempt
	a.Fingerprint, a.Number, a.Via, a.Proxied = r.fingerprint(), c.number, cmp.Or(r.Via, randomEndpoint()), !r.Start.IsZero()
	a.RequestID, a.Invoke = fmt.Sprintf("attempt-%d", w.sent.Add(1)), time.Since(w.Began)
	if r.Change != nil { // which each answer completes
		a.Change = new(*r.Change)
	}
	if !a.Proxied { // another endpoint would have another time
		c.request.Via = ""
	}
	answer, err := c.exchange(q, &a)
	if err != nil {
		a.Error = err.Error()
	}
	a.Return = time.Since(w.Began)
	w.Journal.Add(a)
	c.last = a
	return answer, err
}

func (c *recorder) exchange(q *http.Request, a *journal.Attempt) (*http.Response, error) {
	q = q.Clone(q.Context())
	q.URL.Host, q.Host = strings.TrimPrefix(c.wire.Endpoints[a.Via], "http://"), ""
	q.GetBody = nil // net/http must not send it again by itself
	q.Header.Set("X-Request-ID", a.RequestID)
	pool := c.wire.pool
	if c.request.Pipelined {
		pool = c.wire.follows
	}
	answer, err := pool.RoundTrip(q)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	a.Status, a.Replica = answer.StatusCode, answer.Header.Get("X-Served-By")
	a.Replayed = answer.Header.Get(idempotency.HeaderReplay) == "true"
	if a.Change != nil {
		a.Change.Version, _ = strconv.ParseInt(strings.Trim(answer.Header.Get("ETag"), `"`), 10, 64) // or none
	}
	if err != nil {
		return nil, fmt.Errorf("the answer broke off: %w", err)
	}
	enter(a, body)
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return answer, nil
}

// enter enters the body of an answer.
func enter(a *journal.Attempt, body []byte) {
	var known struct {
		ID, Code, State string
		Stock           *int64
		ResponseStatus  int `json:"response_status"`
	}
	_ = json.Unmarshal(body, &known) // a gateway's page says none of these
	if a.LookUp != nil {
		a.LookUp.State, a.LookUp.Status = known.State, known.ResponseStatus
		return
	}
	a.Body, a.Code, a.Resource = fmt.Sprintf("%x", sha256.Sum256(body)), known.Code, known.ID
	if a.Change != nil {
		a.Change.Stock = known.Stock
	}
}

// randomEndpoint is nginx mostly.
func randomEndpoint() string { return endpoints[min(rand.IntN(10), len(endpoints)-1)] }
