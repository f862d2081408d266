package httpapi_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/api"
	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/httpapi"
)

// startedAt is what the proxy adds to a request that it received then.
func startedAt(began time.Time) func(*http.Request) {
	return with("X-Request-Start", fmt.Sprintf("t=%.3f", float64(began.UnixMilli())/1000))
}

// TestAttempt_OlderThanARefusalIsNotExecuted has copies of a request at two replicas. One is
// refused, then the product comes, then the other copy is read. The proxy's clock may be ahead of
// the replicas'.
func TestAttempt_OlderThanARefusalIsNotExecuted(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for _, ahead := range []time.Duration{0, 2 * time.Second, checkout.MaxRequestAge - time.Minute} {
		began, sku := time.Now().Add(ahead), fmt.Sprintf("new-sku-%d", ahead)
		key, body := newKey(), orderOf(s.customer().ID, sku, 1)
		one := request{method: "POST", path: "/v1/orders", key: key, body: body, edit: startedAt(began)}
		s.do(one).problem(422, "unknown_product")
		s.put(sku)
		before := s.effect()
		other := one
		other.replica = 1
		s.do(other).problem(409, "newer_attempt_refused")
		require.Equal(t, before, s.effect())
		s.do(request{method: "GET", path: keyPath(key)}).problem(404, "idempotency_key_not_found")

		corrected := one
		corrected.body = strings.Replace(body, sku, "tee-black", 1)
		if ahead > 0 { // and past the proxy
			corrected.edit = nil
			s.do(corrected).problem(409, "newer_attempt_refused")
		}
		corrected.edit = startedAt(began.Add(time.Millisecond))
		answer := s.do(corrected)
		require.Equal(t, http.StatusCreated, answer.status, answer.body)
		require.False(t, answer.replayed())
		s.do(other).problem(422, "idempotency_key_reused")
	}
}

// put makes a product for sale.
func (s *shop) put(sku string) {
	s.t.Helper()
	product := `{"name":"New","price":{"amount":100,"currency":"USD"},"stock":10}`
	require.Equal(s.t, http.StatusCreated, s.do(request{method: "PUT", path: "/v1/products/" + sku, body: product}).status)
}

// TestAttempt_TimeComesFromTrustedProxiesAlone asks again with a time before the refusal.
func TestAttempt_TimeComesFromTrustedProxiesAlone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		edit    func(*http.Request)
		trusted bool
		status  int
		code    string
	}{
		{"trusted", startedAt(time.Now().Add(-time.Minute)), true, 409, "newer_attempt_refused"},
		{"not trusted", startedAt(time.Now().Add(-time.Minute)), false, 201, ""},
		{"none", func(*http.Request) {}, true, 201, ""},
		{"no number", with("X-Request-Start", "t=soon"), true, 201, ""},
		{"in microseconds", with("X-Request-Start", fmt.Sprint(time.Now().UnixMicro())), true, 201, ""},
		{"in the future", startedAt(time.Now().Add(checkout.MaxRequestAge - time.Minute)), true, 201, ""},
		{"too far in the future", startedAt(time.Now().Add(checkout.MaxRequestAge + time.Hour)), true, 409, "newer_attempt_refused"},
		{"too old", startedAt(time.Now().Add(-checkout.MaxRequestAge - time.Second)), true, 503, "request_too_old"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := setup(t, func(cfg *httpapi.Config) {
				if !c.trusted {
					cfg.TrustedProxies = nil
				}
			})
			key, body := newKey(), orderOf(s.customer().ID, "new-sku", 1)
			s.post("/v1/orders", key, body, 422)
			s.put("new-sku")
			answer := s.do(request{method: "POST", path: "/v1/orders", key: key, body: body, edit: c.edit})
			require.Equal(t, c.status, answer.status, answer.body)
			if c.code != "" {
				answer.problem(c.status, c.code)
			}
		})
	}
}

// pipelined is a request of more bytes than net/http reads ahead, which are 4 KiB.
var pipelined = fmt.Sprintf("POST /v1/orders HTTP/1.1\r\nHost: shop\r\nContent-Length: %d\r\n\r\n%[1]*s", 8<<10, "")

const stockOfTees = "SELECT stock FROM products WHERE sku = 'tee-black' ORDER BY account_id LIMIT 1"

// TestAttempt_WhoseClientIsGoneIsNotExecuted closes the connection while the request waits to be
// authenticated, as in the socket of a paused replica.
func TestAttempt_WhoseClientIsGoneIsNotExecuted(t *testing.T) {
	t.Parallel()
	answered := make(chan int, 1)
	s := setup(t, func(cfg *httpapi.Config) {
		cfg.AuthCacheTTL = 0
		cfg.ObserveRequest = func(r *http.Request, _ string, status int, _ time.Duration) {
			if r.Header.Get("X-Request-ID") == "abandoned" {
				answered <- status
			}
		}
	})
	customer, key := s.customer().ID, newKey()
	order, tee := orderOf(customer, "tee-black", 1), `{"name":"Tee","price":{"amount":1,"currency":"USD"},"stock":7}`
	before, stock := s.footprint(), value[int](s, stockOfTees)
	for _, r := range []request{
		{method: "POST", path: "/v1/orders", key: key, body: order},
		{method: "PUT", path: "/v1/products/tee-black", key: newKey(), body: tee},
		{method: "PUT", path: "/v1/products/tee-black", body: tee},
	} {
		for _, next := range []string{"", pipelined} {
			s.abandon(r, next, (*net.TCPConn).Close)
			require.Equal(t, 499, <-answered, "%s: nobody saw the failure", r.method)
		}
	}
	require.Equal(t, before, s.footprint())
	require.Equal(t, stock, value[int](s, stockOfTees))
	s.post("/v1/orders", key, order, http.StatusCreated)
}

// TestAttempt_WhoseClientHasHalfClosedIsNotExecuted: who only stops sending looks like who is gone,
// but can read the answer.
func TestAttempt_WhoseClientHasHalfClosedIsNotExecuted(t *testing.T) {
	t.Parallel()
	s := setup(t, func(cfg *httpapi.Config) { cfg.AuthCacheTTL = 0 })
	r := request{method: "POST", path: "/v1/orders", key: newKey(), body: orderOf(s.customer().ID, "tee-black", 1)}
	before := s.footprint()
	conn := s.abandon(r, "", (*net.TCPConn).CloseWrite)
	defer func() { _ = conn.Close() }()
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	var problem api.Problem
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&problem))
	require.Equal(t, http.StatusServiceUnavailable, answer.StatusCode)
	require.Equal(t, "request_abandoned", problem.Code)
	require.Equal(t, before, s.footprint())
	s.post(r.path, r.key, r.body, http.StatusCreated)
}

// abandon sends a request, with what comes next on the connection, and leaves while the request
// waits to be authenticated.
func (s *shop) abandon(r request, next string, leave func(*net.TCPConn) error) *net.TCPConn {
	s.t.Helper()
	tx, err := s.pool.Begin(s.ctx)
	require.NoError(s.t, err)
	_, err = tx.Exec(s.ctx, "SET LOCAL idle_in_transaction_session_timeout = 0; LOCK TABLE api_keys_version")
	require.NoError(s.t, err)
	dialled, err := net.Dial("tcp", strings.TrimPrefix(s.replicas[0].URL, "http://"))
	require.NoError(s.t, err)
	conn := dialled.(*net.TCPConn)
	key := ""
	if r.key != "" {
		key = "Idempotency-Key: " + r.key + "\r\n"
	}
	_, err = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: shop\r\nAuthorization: Bearer %s\r\n%s"+
		"X-Request-ID: abandoned\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s%s", r.method, r.path, demo, key, len(r.body), r.body, next)
	require.NoError(s.t, err)
	s.eventually(func() bool { return s.waiters() == 1 }, "the request waits")
	require.NoError(s.t, leave(conn))
	s.eventually(func() bool { return hasLeft(conn) }, "the replica's kernel has the client's end")
	require.NoError(s.t, tx.Rollback(s.ctx))
	return conn
}

// hasLeft reports whether the other side has acknowledged the end of a connection (FIN_WAIT2, 05 in
// proc_net_tcp(5)): on a busy machine that is after Close has returned. Other systems do not tell.
func hasLeft(conn *net.TCPConn) bool {
	table, err := os.ReadFile("/proc/net/tcp")
	local := conn.LocalAddr().(*net.TCPAddr)
	return err != nil || regexp.MustCompile(fmt.Sprintf(`:%04X [0-9A-F:]+ 05 `, local.Port)).Match(table)
}

// TestKey_ThatMovedMoneyLeavesATombstone shows what a client sees after the answer has expired.
func TestKey_ThatMovedMoneyLeavesATombstone(t *testing.T) {
	t.Parallel()
	s := setup(t)
	customer, key := s.customer().ID, newKey()
	wallet := "/v1/customers/" + customer.String()
	topUp := request{method: "POST", path: wallet + "/top-ups", key: key, body: `{"amount":{"amount":500,"currency":"USD"}}`}
	require.Equal(t, http.StatusCreated, s.do(topUp).status)
	require.Equal(t, wallet+"/wallet", *s.keyState(key).Resource)
	_, err := s.pool.Exec(s.ctx, "UPDATE idempotency_keys SET expires_at = now() WHERE key = $1", key)
	require.NoError(t, err)
	require.NoError(t, s.redis.FlushDB(s.ctx).Err())
	before := s.effect()

	expired := s.do(topUp).problem(409, "idempotency_key_expired")
	require.Equal(t, wallet+"/wallet", *expired.Resource)
	known := s.keyState(key)
	require.Equal(t, api.KeyStateStateExpired, known.State)
	require.EqualValues(t, 201, *known.ResponseStatus)
	require.Equal(t, wallet+"/wallet", *known.Resource)
	another := topUp
	another.body = `{"amount":{"amount":501,"currency":"USD"}}`
	s.do(another).problem(422, "idempotency_key_reused")
	require.Equal(t, before, s.effect())
}
