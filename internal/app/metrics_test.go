package app

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/testenv"
)

func TestMetrics_UnknownMethodsAreNoLabels(t *testing.T) {
	t.Parallel()
	r := serveSeeded(t, testConfig(t))
	r.call("BREW", "/v1/orders", "", "")
	metrics := r.operations("/metrics").body
	require.Contains(t, metrics, `method="other"`)
	require.NotContains(t, metrics, "BREW")
}

// awaitMetric waits for a line of /metrics, whose figures may be some seconds old.
func (r *testReplica) awaitMetric(line string) {
	r.t.Helper()
	require.Eventually(r.t, func() bool { return strings.Contains(r.operations("/metrics").body, "\n"+line+"\n") }, patience, pause, line)
}

func TestMetrics_CountTakeoversAndLostFences(t *testing.T) {
	t.Parallel()
	r := serveSeeded(t, testConfig(t))
	path := "/v1/orders/" + r.placeOrder() + "/payments"
	late := make(chan answer, 1)
	go func() {
		got, err := r.try(http.MethodPost, path, "pay", cardPayment("tok_slow_1s"))
		if err != nil {
			got.body = err.Error()
		}
		late <- got
	}()
	// While the provider works, the next attempt begins: another replica that believes
	// this one to be dead.
	require.Eventually(t, func() bool {
		taken, err := r.servers.pool.Exec(t.Context(), "UPDATE idempotency_keys SET attempt = attempt + 1 WHERE status = 'in_progress'")
		return err == nil && taken.RowsAffected() == 1
	}, patience, pause)
	got := <-late
	require.Equal(t, http.StatusConflict, got.status, got.body)
	r.awaitMetric("idempotency_fence_failures_total 1")
	r.awaitMetric("idempotency_takeovers_total 0")

	require.Equal(t, http.StatusCreated, r.call(http.MethodPost, path, "pay", cardPayment("tok_slow_1s")).status)
	r.awaitMetric("idempotency_takeovers_total 1")
	r.awaitMetric("idempotency_fence_failures_total 1")
	r.awaitMetric(`payments{state="succeeded"} 1`)
}

func TestMetrics_CountDamagedRecords(t *testing.T) {
	t.Parallel()
	r := serveSeeded(t, testConfig(t))
	path := "/v1/orders/" + r.placeOrder() + "/payments"
	first := r.call(http.MethodPost, path, "pay", cardPayment("tok_visa"))
	require.Equal(t, http.StatusCreated, first.status, first.body)
	r.awaitMetric("idempotency_repaired_total 0")
	names, err := r.servers.redis.Keys(t.Context(), "idempotency:*:pay").Result()
	require.NoError(t, err)
	require.Len(t, names, 1)
	require.NoError(t, r.servers.redis.Set(t.Context(), names[0], "damaged", time.Minute).Err())
	require.Equal(t, first.body, r.call(http.MethodPost, path, "pay", cardPayment("tok_visa")).body)
	r.awaitMetric("idempotency_repaired_total 1")
}

// TestMetrics_CountTroublesDuringAnOutage: alerts about the outage are made of these counters.
func TestMetrics_CountTroublesDuringAnOutage(t *testing.T) {
	t.Parallel()
	server := testenv.PostgresServer(t)
	r := serveSeeded(t, configFor(t, server.URL, testenv.Redis(t)))
	r.awaitMetric("outbox_depth 0")
	server.Stop()
	require.Eventually(t, func() bool {
		metrics := r.operations("/metrics").body
		return !strings.Contains(metrics, "\noutbox_depth ") && strings.Contains(metrics, "\noutbox_troubles_total ") &&
			!strings.Contains(metrics, "\noutbox_troubles_total 0\n") && strings.Contains(metrics, "\nreconciler_settled_total 0\n")
	}, patience, pause)
}

func TestMetrics_CountLostLeases(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	cfg.Lease = time.Second
	r := serveSeeded(t, cfg)
	path := "/v1/orders/" + r.placeOrder() + "/payments"
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = r.try(http.MethodPost, path, "slow", cardPayment("tok_slow_5s"))
	}()
	require.Eventually(t, func() bool { return inFlight(t, r) }, patience, pause)
	r.loseRecords()
	<-done
	r.awaitMetric("idempotency_processing_timeout_total 1")
	require.Equal(t, "lost", r.logs.lines(t, "event", "idempotency_check")[2]["result"])
}

// TestMetrics_HoldNoKey sends what must not become a label in all ways there are.
func TestMetrics_HoldNoKey(t *testing.T) {
	t.Parallel()
	r := serveSeeded(t, testConfig(t))
	r.sendSecrets()
	metrics := r.operations("/metrics").body
	require.Contains(t, metrics, `idempotency_checks_total{result="mismatch"`)
	for _, secret := range secrets {
		require.NotContains(t, metrics, secret)
	}
}

// Things that must not leave a replica by its figures or its traces.
const (
	secretKey    = "secret-idempotency-key"
	secretNumber = "4242424242424242"
)

var secrets = []string{secretKey, secretNumber, "tok_visa", "tok_mastercard", "sk_test", "Ada"}

// sendSecrets sends them in all ways there are.
func (r *testReplica) sendSecrets() {
	r.t.Helper()
	path := "/v1/orders/" + r.placeOrder() + "/payments"
	require.Equal(r.t, http.StatusCreated, r.call(http.MethodPost, path, secretKey, cardPayment("tok_visa")).status)
	for _, odd := range []struct{ method, path, body string }{
		{http.MethodPost, path, cardPayment("tok_visa")},       // a replay
		{http.MethodPost, path, cardPayment("tok_mastercard")}, // a mismatch
		{http.MethodGet, "/v1/idempotency-keys/" + secretKey, ""},
		{http.MethodGet, "/v1/idempotency-keys/" + secretKey + "/more", ""},
		{http.MethodDelete, "/v1/idempotency-keys/" + secretKey, ""},
		{http.MethodGet, "/v1/orders?cursor=" + secretKey, ""},
		{http.MethodGet, "/v1/orders/" + secretNumber, ""},
		{http.MethodPost, "/v1/orders/" + secretKey + "/payments", cardPayment("tok_visa")},
		{http.MethodGet, "/" + secretKey, ""},
		{http.MethodPost, "/v1/customers", `{"name":"` + secretNumber + `","email":"` + secretKey + `@example.com"}`},
		{http.MethodPost, "/v1/customers", `{"name":"` + secretKey + `","email":"` + secretKey + `@example.com"}`},
	} {
		r.call(odd.method, odd.path, secretKey, odd.body)
	}
	r.call(secretKey, "/v1/orders", secretKey, "") // as a method
}
