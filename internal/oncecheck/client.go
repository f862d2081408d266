package oncecheck

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/oncepay/oncepay/internal/wait"
)

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 1 << 20

// errUsedUp ends a run that would send too many requests.
var errUsedUp = errors.New("the requests of this run are used up; --max-requests allows more")

// client sends requests, at a bounded rate, and remembers all of them. Safe for concurrent use.
type client struct {
	cfg   *Config
	began time.Time
	pool  http.RoundTripper

	mu   sync.Mutex
	sent int
	next time.Time // when the next request may be sent
	rule string    // that is checked now
	// renews says that a replay is a success, and another answer than the first one: the rule
	// replay is broken. The others then judge effects alone, or all of them would be broken.
	renews bool
	all    []Exchange
}

func newClient(cfg *Config) *client {
	return &client{cfg: cfg, began: time.Now(), pool: newTransport(cfg)}
}

// newTransport uses each connection once: net/http would send a request with a key again by
// itself when a connection that was used before turns out to be closed.
func newTransport(cfg *Config) *http.Transport {
	return &http.Transport{DisableKeepAlives: true, DisableCompression: true, Proxy: http.ProxyFromEnvironment,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: cfg.Insecure}} //nolint:gosec // the user's --insecure
}

// reserve waits until so many requests may be sent at once.
func (c *client) reserve(ctx context.Context, requests int) error {
	c.mu.Lock()
	if c.sent += requests; c.sent > c.cfg.MaxRequests {
		c.mu.Unlock()
		return errUsedUp
	}
	now := time.Now()
	if c.next.Before(now) {
		c.next = now
	}
	delay := c.next.Sub(now)
	c.next = c.next.Add(time.Duration(requests) * time.Second / time.Duration(c.cfg.Rate))
	c.mu.Unlock()
	return wait.Pause(ctx, delay)
}

// way is how a request gets to the server. The zero value is the ordinary way.
type way struct {
	transport http.RoundTripper                       // nil: the client's own
	body      func(context.Context, string) io.Reader // how the body is sent; nil: at once
}

// exchange sends a request once, without waiting for its turn.
func (c *client) exchange(ctx context.Context, note string, r Request, w way) Exchange {
	e := Exchange{Note: note, Sent: time.Since(c.began)}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Attempt)
	defer cancel()
	q, err := r.request(ctx, w)
	if err == nil {
		e.Request = wire(q, r.Body)
		err = e.roundTrip(cmp.Or[http.RoundTripper](w.transport, c.pool), q)
	}
	if err != nil {
		e.Error, e.status = err.Error(), 0
	}
	e.Answered = time.Since(c.began)
	c.mu.Lock()
	defer c.mu.Unlock()
	e.rule = c.rule
	c.all = append(c.all, e)
	return e
}

// request makes the request for the wire.
func (r Request) request(ctx context.Context, w way) (*http.Request, error) {
	var body io.Reader = strings.NewReader(r.Body)
	if w.body != nil {
		body = w.body(ctx, r.Body)
	}
	q, err := http.NewRequestWithContext(ctx, r.Method, r.URL, body)
	if err != nil {
		return nil, err
	}
	q.Header, q.ContentLength = r.Header.Clone(), int64(len(r.Body))
	if host := q.Header.Get("Host"); host != "" {
		q.Host = host
	}
	return q, nil
}

// roundTrip reads the whole answer; a redirect is an answer like any other.
func (e *Exchange) roundTrip(transport http.RoundTripper, q *http.Request) error {
	answer, err := transport.RoundTrip(q)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	e.body, e.status, e.header = string(body), answer.StatusCode, answer.Header
	e.Response = wireAnswer(answer, e.body)
	if err != nil {
		return fmt.Errorf("the answer was cut: %w", err)
	}
	return nil
}
