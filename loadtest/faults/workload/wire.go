// Package workload makes the requests of a campaign: clients that shop, retry by
// idempotency/transport, race each other, and come back later, with every attempt in the journal.
package workload

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
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
const (
	nginx = "nginx"
	api1  = "api-1"
	api2  = "api-2"
)

// Request is one logical request; its attempts share the key.
type Request struct {
	Account, Key, Operation, Path string // an empty key: it is sent only once
	Method                        string // empty: POST
	Body                          []byte
	Client                        int
	Via                           string          // endpoint of the first attempt: nginx, api-1 or api-2; empty: nginx mostly
	Prefer                        string          // the header of that name (RFC 7240), such as wait=2
	Patience                      time.Duration   // until an attempt is given up; 0: answerTimeout
	Purpose                       journal.Purpose // why it is sent
	Change                        *journal.Change // what it does, if that is checked
	Pipelined                     bool            // more than 4 KiB follow it on its connection
	Start                         time.Time       // when a proxy read it, as that says to a replica; zero: there is no proxy
	LooksUp                       string          // the key that it asks about; empty: it is no look-up
}

// fingerprint names the meaning: the path, the condition and the body.
func (r Request) fingerprint() string {
	sum := sha256.Sum256(append([]byte(r.Path+r.ifMatch()+"\n"), r.Body...))
	return hex.EncodeToString(sum[:4])
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
	Endpoints map[string]string // base URLs by name: nginx, api-1, api-2
	Journal   *journal.Writer
	Began     time.Time

	pool     *http.Transport
	follows  *http.Transport // for what is pipelined
	inFlight atomic.Int64
	sent     atomic.Int64 // attempts so far
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

// InFlight is how many requests wait for their answers.
func (w *Wire) InFlight() int64 { return w.inFlight.Load() }

// Close closes the idle connections.
func (w *Wire) Close() { w.pool.CloseIdleConnections() }

// Call repeats a request until it is answered for good, and returns the last attempt. Its random
// choices come from random, which must be the caller's own.
func (w *Wire) Call(ctx context.Context, r Request, random *rand.Rand) journal.Attempt {
	ctx, cancel := context.WithTimeout(ctx, max(budget, 2*r.Patience))
	defer cancel()
	return w.send(ctx, unlimited, &recorder{wire: w, request: r, random: random})
}

// Once makes one attempt, to its endpoint, and calls it by this number.
func (w *Wire) Once(ctx context.Context, r Request, number int) journal.Attempt {
	return w.send(ctx, 1, &recorder{wire: w, request: r, number: number - 1})
}

// LookUp asks once what became of the request with a key.
func (w *Wire) LookUp(ctx context.Context, r Request, via string) {
	w.Once(ctx, Request{Account: r.Account, Operation: "look-up", Path: "/idempotency-keys/" + url.PathEscape(r.Key), Method: http.MethodGet,
		Client: r.Client, Via: via, Purpose: r.Purpose, LooksUp: r.Key}, 1)
}

// send has a Transport make the attempts, each of which the recorder sees. Without a key there is
// one attempt, and no Transport, which would add a key.
func (w *Wire) send(ctx context.Context, attempts int, at *recorder) journal.Attempt {
	patience := cmp.Or(at.request.Patience, answerTimeout)
	var sender http.RoundTripper = &transport.Transport{
		Base: at, MaxAttempts: attempts, MaxElapsed: max(budget, patience), AttemptTimeout: patience,
		BaseDelay: firstPause, MaxDelay: longestPause,
	}
	if at.request.Key == "" {
		alone, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		ctx, sender = alone, at
	}
	if answer, err := (&http.Client{Transport: sender}).Do(at.request.on(ctx)); err == nil { // what it says is in the journal either way
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
	}
	return at.last
}

// on is the request for the wire.
func (r Request) on(ctx context.Context) *http.Request {
	q, err := http.NewRequestWithContext(ctx, cmp.Or(r.Method, http.MethodPost), "http://endpoint/v1"+r.Path, bytes.NewReader(r.Body))
	if err != nil {
		panic(err) // our own methods and paths
	}
	q.Header = http.Header{"Authorization": {"Bearer " + r.Account}, "Content-Type": {"application/json"}}
	for name, value := range map[string]string{idempotency.HeaderKey: r.Key, "Prefer": r.Prefer, "If-Match": r.ifMatch()} {
		if value != "" {
			q.Header.Set(name, value)
		}
	}
	return q
}

// recorder sends the attempts of one request for a Transport: it chooses an endpoint for each, and
// enters it in the journal with the whole answer. It reads bodies to their end, so that an
// attempt's timeout covers them, too.
type recorder struct {
	wire    *Wire
	request Request
	random  *rand.Rand // nil: there is one attempt, to its endpoint
	number  int        // of the attempts so far
	last    journal.Attempt
}

// RoundTrip makes one attempt.
func (c *recorder) RoundTrip(q *http.Request) (*http.Response, error) {
	c.number++
	r := c.request
	a := journal.Attempt{Client: r.Client, Account: r.Account, Key: cmp.Or(r.LooksUp, q.Header.Get(idempotency.HeaderKey)), Operation: r.Operation,
		Purpose: r.Purpose, Fingerprint: r.fingerprint(), Number: c.number, Via: c.endpoint(), RequestID: fmt.Sprintf("attempt-%d", c.wire.sent.Add(1)),
		Invoke: time.Since(c.wire.Began)}
	if r.Change != nil {
		asked := *r.Change
		a.Change = &asked
	}
	if r.LooksUp != "" {
		a.LookUp = &journal.LookUp{}
	}
	c.wire.inFlight.Add(1)
	answer, err := c.exchange(q, &a)
	if err != nil {
		a.Error = err.Error()
	}
	c.wire.inFlight.Add(-1)
	a.Return = time.Since(c.wire.Began)
	c.wire.Journal.Add(a)
	c.last = a
	return answer, err
}

func (c *recorder) exchange(q *http.Request, a *journal.Attempt) (*http.Response, error) {
	endpoint, err := url.Parse(c.wire.Endpoints[a.Via])
	if err != nil {
		panic(err) // the stack's own addresses
	}
	q = q.Clone(q.Context())
	q.URL.Scheme, q.URL.Host, q.Host = endpoint.Scheme, endpoint.Host, ""
	q.Header.Set("X-Request-ID", a.RequestID)
	if start := c.request.Start; !start.IsZero() {
		q.Header.Set("X-Request-Start", fmt.Sprintf("t=%.3f", float64(start.UnixMilli())/1000))
	}
	pool := c.wire.pool
	if c.request.Pipelined {
		pool = c.wire.follows
	}
	answer, err := pool.RoundTrip(q)
	if err != nil {
		return nil, err
	}
	enterHeader(a, answer)
	body, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("the answer broke off: %w", err)
	}
	enterBody(a, body)
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return answer, nil
}

func enterHeader(a *journal.Attempt, answer *http.Response) {
	a.Status, a.Replica = answer.StatusCode, answer.Header.Get("X-Served-By")
	a.Replayed = answer.Header.Get(idempotency.HeaderReplay) == "true"
	if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil {
		a.RetryAfter = time.Duration(seconds) * time.Second
	}
	if a.Change != nil {
		a.Change.Version, _ = strconv.ParseInt(strings.Trim(answer.Header.Get("ETag"), `"`), 10, 64) // or none
	}
}

func enterBody(a *journal.Attempt, body []byte) {
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
	sum := sha256.Sum256(body)
	a.Body, a.Code, a.Resource = hex.EncodeToString(sum[:]), known.Code, known.ID
	if a.Change != nil {
		a.Change.Stock = known.Stock
	}
}

// endpoint is the request's own for the first attempt; the next ones go wherever they get through.
func (c *recorder) endpoint() string {
	if c.request.Via != "" && (c.number == 1 || c.random == nil) {
		return c.request.Via
	}
	return randomEndpoint(c.random)
}

func randomEndpoint(random *rand.Rand) string {
	switch random.IntN(10) {
	case 0:
		return api1
	case 1:
		return api2
	}
	return nginx
}
