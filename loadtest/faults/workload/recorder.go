package workload

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

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
	a := journal.Attempt{Client: r.Client, Account: r.Account, Key: q.Header.Get(idempotency.HeaderKey), Operation: r.Operation,
		Purpose: r.Purpose, Fingerprint: r.fingerprint(), Number: c.number, Via: c.endpoint(), RequestID: fmt.Sprintf("attempt-%d", c.wire.sent.Add(1)),
		Invoke: time.Since(c.wire.Began)}
	if r.Change != nil {
		asked := *r.Change
		a.Change = &asked
	}
	c.wire.inFlight.Add(1)
	answer, err := c.exchange(q, &a)
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
		a.Error = err.Error()
		return nil, err
	}
	enterHeader(a, answer)
	body, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil {
		err = fmt.Errorf("the answer broke off: %w", err)
		a.Error = err.Error()
		return nil, err
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
		ID, Code string
		Stock    *int64
	}
	_ = json.Unmarshal(body, &known) // a gateway's page says neither
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
