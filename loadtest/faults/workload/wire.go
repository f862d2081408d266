// Package workload makes the requests of a campaign: clients that shop, retry by
// idempotency/transport, race each other, and come back later, with every attempt in the journal.
package workload

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/transport"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
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
	// maxIdle keeps every connection of a campaign open.
	maxIdle = 512
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
	pool := &http.Transport{MaxIdleConns: maxIdle, MaxIdleConnsPerHost: maxIdle, IdleConnTimeout: 20 * time.Second}
	follows := &http.Transport{DisableKeepAlives: true, DialContext: dialPipelining}
	return &Wire{Endpoints: endpoints, Journal: j, Began: time.Now(), pool: pool, follows: follows}
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
