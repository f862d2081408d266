package app

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestApp_ServesLogsAndCounts(t *testing.T) {
	t.Parallel()
	r := serveSeeded(t, testConfig(t))
	order := r.placeOrder()
	path := "/v1/orders/" + order + "/payments"

	first := r.call(http.MethodPost, path, "pay-1", cardPayment("tok_visa"))
	require.Equal(t, http.StatusCreated, first.status, first.body)
	require.Equal(t, "api-test", first.header.Get("X-Served-By"))
	again := r.call(http.MethodPost, path, "pay-1", cardPayment("tok_visa"))
	require.Equal(t, "true", again.header.Get("X-Idempotent-Replay"))
	require.Equal(t, first.body, again.body)

	checks := r.logs.lines(t, "key", "pay-1")
	require.Len(t, checks, 2, "one line for each check")
	require.Equal(t, []any{"acquired", "replay"}, []any{checks[0]["result"], checks[1]["result"]})
	for _, line := range checks {
		require.Equal(t, "idempotency_check", line["event"])
		require.Equal(t, "POST /v1/orders/{order_id}/payments", line["endpoint"])
		require.Equal(t, "api-test", line["pod_id"])
		require.NotEmpty(t, line["request_id"])
		require.Contains(t, line, "duration_ms")
	}

	metrics := r.operations("/metrics").body
	for _, want := range []string{
		`idempotency_checks_total{result="acquired",route="/v1/orders/{order_id}/payments"} 1`,
		`idempotency_checks_total{result="replay",route="/v1/orders/{order_id}/payments"} 1`,
		`idempotency_check_duration_seconds_count{result="replay"} 1`,
		`http_request_duration_seconds_count{method="POST",route="/v1/orders/{order_id}/payments",status="201"} 2`,
		`idempotency_replay_total 1`, `idempotency_conflict_total 0`, `idempotency_mismatch_total 0`,
		`idempotency_processing_timeout_total 0`, `idempotency_redis_error_total 0`, `idempotency_repaired_total 0`, `idempotency_waiters 0`, "\nidempotency_breaker_open 0\n",
		`idempotency_takeovers_total 0`, `idempotency_fence_failures_total 0`,
		`payments{state="processing"} 0`, `payments{state="succeeded"} 1`, `payments{state="declined"} 0`,
		`payments_processing 0`, `payments_overdue 0`, `outbox_depth `, `outbox_lag_seconds `, `outbox_retrying{group="order-confirmations"} 0`, `outbox_dead{group="order-confirmations"} 0`,
		`events_consumed_total{group="order-confirmations",result="repeated"} 0`,
		`postgres_pool_max_connections 20`, `redis_pool_connections{pool="records"} `, `redis_pool_hits_total{pool="events"} `,
		`go_goroutines`, `process_resident_memory_bytes`,
	} {
		require.Contains(t, metrics, want)
	}
	require.NotContains(t, metrics, "pay-1", "keys are no labels")
}

func TestReadyz_ShowsItsChecks(t *testing.T) {
	t.Parallel()
	r := serveSeeded(t, testConfig(t))
	require.Equal(t, http.StatusOK, r.operations("/livez").status)
	ready := r.operations("/readyz")
	require.Equal(t, http.StatusOK, ready.status)
	require.Equal(t, "application/json", ready.header.Get("Content-Type"))
	require.Regexp(t, `"status":"ready","replica":"api-test","checks":{"postgres":{"ok":true,"required":true,"duration_ms":[\d.]+},`+
		`"redis":{"ok":true,"required":false,`, ready.body)
}

func TestStop_Drains(t *testing.T) {
	t.Parallel()
	r := serveSeeded(t, testConfig(t))
	path := "/v1/orders/" + r.placeOrder() + "/payments"
	paid := make(chan answer, 1)
	go func() {
		got, err := r.try(http.MethodPost, path, "slow", cardPayment("tok_slow_2s"))
		if err != nil {
			got.body = err.Error()
		}
		paid <- got
	}()
	require.Eventually(t, func() bool { return inFlight(t, r) }, patience, pause)

	r.stop()
	require.Eventually(t, func() bool {
		answer := r.operations("/readyz")
		return answer.status == http.StatusServiceUnavailable && answer.field(t, "status") == "draining"
	}, patience, pause, "not ready comes first")
	require.Empty(t, paid, "the payment is still in flight")
	require.Equal(t, http.StatusOK, r.operations("/livez").status, "draining is no reason to be killed")

	got := <-paid
	require.Equal(t, http.StatusCreated, got.status, got.body)
	require.NoError(t, r.awaitEnd())
	_, err := r.try(http.MethodGet, "/v1/orders", "", "")
	require.Error(t, err, "the port is closed")
}

// inFlight reports whether a key is taken, which is so while the handler runs.
func inFlight(t *testing.T, r *testReplica) bool {
	t.Helper()
	keys, err := r.servers.redis.Keys(t.Context(), "idempotency:*:slow").Result()
	return err == nil && len(keys) == 1 // a busy Redis is asked again
}

// TestStop_GivesNotice has a connection that a proxy keeps open, and a new one, after the replica
// was told to stop.
func TestStop_GivesNotice(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	logs := &logBuffer{}
	require.NoError(t, Seed(t.Context(), cfg, slog.New(slog.DiscardHandler)))
	a, err := New(t.Context(), cfg, cfg.NewLogger(logs))
	require.NoError(t, err)
	given, over := make(chan struct{}), make(chan time.Time)
	a.life.after = func(time.Duration) <-chan time.Time {
		close(given)
		return over
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- a.Serve(ctx) }()
	<-a.Ready()

	kept, err := net.Dial("tcp", a.Addr())
	require.NoError(t, err)
	defer func() { require.NoError(t, kept.Close()) }()
	require.False(t, askOn(t, kept).Close, "a proxy may keep the connection")
	stop()
	select {
	case <-given:
	case err := <-ended:
		t.Fatalf("it ended without notice: %v", err)
	}
	require.True(t, askOn(t, kept).Close, "it is told that the connection ends")
	fresh, err := net.Dial("tcp", a.Addr())
	require.NoError(t, err, "the port is open")
	defer func() { require.NoError(t, fresh.Close()) }()
	require.True(t, askOn(t, fresh).Close)
	close(over)
	require.NoError(t, <-ended)
}

// askOn sends a request on a connection, and reads the answer.
func askOn(t *testing.T, conn net.Conn) *http.Response {
	t.Helper()
	_, err := io.WriteString(conn, "GET /v1/orders HTTP/1.1\r\nHost: shop\r\nAuthorization: Bearer sk_test_demo\r\n\r\n")
	require.NoError(t, err)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode)
	return answer
}

func TestStop_IsForcedAtItsDeadline(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	cfg.ShutdownDeadline = 200 * time.Millisecond
	r := serveSeeded(t, cfg)
	path := "/v1/orders/" + r.placeOrder() + "/payments"
	broken := make(chan error, 1)
	go func() {
		_, err := r.try(http.MethodPost, path, "slow", cardPayment("tok_slow_2s"))
		broken <- err
	}()
	require.Eventually(t, func() bool { return inFlight(t, r) }, patience, pause)

	r.stop()
	require.ErrorContains(t, r.awaitEnd(), "broken off after 200ms")
	require.Error(t, <-broken)
}

func TestStart_NamesAPortThatIsTaken(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()

	cfg := testConfig(t)
	cfg.HTTPAddr = taken.Addr().String()
	require.ErrorContains(t, serve(t, cfg).awaitEnd(), "HTTP_ADDR")

	cfg.HTTPAddr, cfg.OpsAddr = "127.0.0.1:0", taken.Addr().String()
	_, err = New(t.Context(), cfg, cfg.NewLogger(&logBuffer{}))
	require.ErrorContains(t, err, "OPS_ADDR")
}
