package app

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency/breaker"
	"github.com/oncepay/oncepay/internal/testenv"
)

// TestBreaker_OutageOfRedisCostsMilliseconds has clients send payments and orders while Redis
// refuses connections, or takes them and says nothing. The first few requests find that out, and
// then one every half a second.
func TestBreaker_OutageOfRedisCostsMilliseconds(t *testing.T) {
	t.Parallel()
	for name, outage := range map[string]struct{ begin, end func(*testenv.Server) }{
		"refusing": {(*testenv.Server).Stop, (*testenv.Server).Start},
		"silent":   {(*testenv.Server).Pause, (*testenv.Server).Resume},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redis := testenv.RedisServer(t)
			cfg := configFor(t, testenv.Postgres(t), redis.URL)
			cfg.RateLimit = 100_000
			r := serveSeeded(t, cfg)
			clients := newTraffic(r)
			well := clients.send(time.Second)
			require.Empty(t, failed(well))

			outage.begin(redis)
			clients.send(time.Second) // connections have to be found broken, and answers to be waited for
			require.Contains(t, r.operations("/metrics").body, "\nidempotency_breaker_open 1\n")
			began := time.Now()
			during := clients.send(2 * time.Second)
			pauses := int(time.Since(began) / breaker.DefaultPause)
			for _, got := range during {
				require.Equal(t, map[bool]int{true: http.StatusServiceUnavailable, false: http.StatusCreated}[got.payment], got.status)
			}
			require.LessOrEqual(t, len(during)-r.refusedByBreaker(during), pauses+1, "those that asked Redis, of %d", len(during))
			t.Logf("well:   %s", latencies(well))
			t.Logf("outage: %s", latencies(during))

			outage.end(redis)
			ended := time.Now()
			require.Eventually(t, func() bool { return len(failed(clients.send(0))) == 0 }, patience, pause)
			t.Logf("back to normal after %s", time.Since(ended))
			require.Empty(t, failed(clients.send(time.Second/2)))
			require.Contains(t, r.operations("/metrics").body, "\nidempotency_breaker_open 0\n")
			require.Len(t, r.logs.lines(t, "msg", "idempotency: breaker open, the store does not answer"), 1)
			require.Len(t, r.logs.lines(t, "msg", "idempotency: breaker closed, the store answers again"), 1)
		})
	}
}

// traffic is four clients at one replica. Each sends orders and payments by turns, each with a key
// of its own.
type traffic struct {
	replica              *testReplica
	client               *http.Client
	order, payment, path string
	sent                 atomic.Int64
}

// sent is a request that was answered.
type sent struct {
	key     string
	payment bool
	status  int
	took    time.Duration
}

func newTraffic(r *testReplica) *traffic {
	r.t.Helper()
	order := r.placeOrder()
	customer := r.call(http.MethodGet, "/v1/orders/"+order, "", "").field(r.t, "customer_id")
	plenty := r.call(http.MethodPut, "/v1/products/plenty", "", `{"name":"Plenty","price":{"amount":1,"currency":"USD"},"stock":100000}`)
	require.Equal(r.t, http.StatusOK, plenty.status/100*100, plenty.body)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}, Timeout: patience}
	r.t.Cleanup(client.CloseIdleConnections)
	return &traffic{replica: r, client: client, path: "/v1/orders/" + order + "/payments", payment: cardPayment("tok_visa"),
		order: `{"customer_id":"` + customer + `","items":[{"sku":"plenty","quantity":1}]}`}
}

// send has each client send for so long, and one order and one payment at least.
func (c *traffic) send(d time.Duration) (all []sent) {
	c.replica.t.Helper()
	var mu sync.Mutex
	var clients sync.WaitGroup
	until := time.Now().Add(d)
	for range 4 {
		clients.Go(func() {
			for {
				order, payment := c.post("/v1/orders", c.order), c.post(c.path, c.payment)
				payment.payment = true
				mu.Lock()
				all = append(all, order, payment)
				mu.Unlock()
				if time.Now().After(until) {
					return
				}
			}
		})
	}
	clients.Wait()
	return all
}

// post returns the status 0 if there was no answer.
func (c *traffic) post(path, body string) sent {
	got := sent{key: "sent-" + strconv.FormatInt(c.sent.Add(1), 10)}
	req, err := http.NewRequestWithContext(c.replica.t.Context(), http.MethodPost, "http://"+c.replica.Addr()+path, strings.NewReader(body))
	if err != nil {
		return got
	}
	req.Header.Set("Authorization", "Bearer sk_test_demo")
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", got.key)
	began := time.Now()
	res, err := c.client.Do(req)
	if err != nil {
		return got
	}
	defer func() { _ = res.Body.Close() }()
	_, _ = io.Copy(io.Discard, res.Body)
	got.status, got.took = res.StatusCode, time.Since(began)
	return got
}

func failed(all []sent) []sent {
	return slices.DeleteFunc(slices.Clone(all), func(s sent) bool { return s.status > 0 && s.status < http.StatusInternalServerError })
}

// latencies says how long orders and payments took.
func latencies(all []sent) string {
	var text strings.Builder
	for _, kind := range []struct {
		name    string
		payment bool
	}{{"orders", false}, {"payments", true}} {
		var took []time.Duration
		for _, s := range all {
			if s.payment == kind.payment {
				took = append(took, s.took)
			}
		}
		slices.Sort(took)
		fmt.Fprintf(&text, "%d %s, p50 %s, p99 %s; ", len(took), kind.name, took[len(took)/2], took[len(took)*99/100])
	}
	return text.String()
}

// refusedByBreaker counts those for which Redis wasn't asked.
func (r *testReplica) refusedByBreaker(all []sent) (n int) {
	r.t.Helper()
	refused := map[any]bool{}
	for _, line := range r.logs.lines(r.t, "event", "idempotency_check") {
		cause, _ := line["error"].(string)
		refused[line["key"]] = strings.Contains(cause, "breaker open")
	}
	for _, s := range all {
		if refused[s.key] {
			n++
		}
	}
	return n
}
