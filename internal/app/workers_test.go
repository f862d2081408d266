package app

import (
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/testenv"
)

// TestWorkers_SettleLostPayments charges without answering. The client never returns: the
// reconciler settles the payment, long before the minute that it leaves to handlers which say
// nothing, and the consumers write the confirmations.
func TestWorkers_SettleLostPayments(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	cfg.ReconcileInterval = 50 * time.Millisecond
	r := serveSeeded(t, cfg)
	order := r.placeOrder()
	payment := r.call(http.MethodPost, "/v1/orders/"+order+"/payments", "pay", cardPayment("tok_charged_no_answer"))
	require.Equal(t, http.StatusServiceUnavailable, payment.status, payment.body)

	require.Eventually(t, func() bool {
		return r.call(http.MethodGet, "/v1/orders/"+order, "", "").field(t, "status") == "paid"
	}, patience, pause)
	replay := r.call(http.MethodPost, "/v1/orders/"+order+"/payments", "pay", cardPayment("tok_charged_no_answer"))
	require.Equal(t, http.StatusCreated, replay.status, replay.body)
	require.Equal(t, "true", replay.header.Get("X-Idempotent-Replay"))
	require.Eventually(t, func() bool { return count(t, r.servers.pool, "order_confirmations") == 2 }, patience, pause)
}

func TestWorkers_ExpireUnpaidOrders(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	cfg.UnpaidOrderTTL, cfg.ExpiryInterval = 100*time.Millisecond, 50*time.Millisecond
	r := serveSeeded(t, cfg)
	order := r.placeOrder()
	require.Eventually(t, func() bool {
		return r.call(http.MethodGet, "/v1/orders/"+order, "", "").field(t, "status") == "expired"
	}, patience, pause)
}

// TestWorkers_PurgeInTime has the purger delete an answer that need not be kept any longer, and no
// other, and events that were published.
func TestWorkers_PurgeInTime(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	cfg.OrderTTL, cfg.OutboxRetention, cfg.PurgeInterval = 100*time.Millisecond, 100*time.Millisecond, 50*time.Millisecond
	r := serveSeeded(t, cfg)
	order := r.placeOrder()
	require.Equal(t, http.StatusCreated, r.call(http.MethodPost, "/v1/orders/"+order+"/payments", "pay", cardPayment("tok_visa")).status)
	require.Eventually(t, func() bool { return count(t, r.servers.pool, "idempotency_keys") == 1 }, patience, pause)
	require.Equal(t, http.StatusOK, r.call(http.MethodGet, "/v1/idempotency-keys/pay", "", "").status)
	require.Eventually(t, func() bool { return count(t, r.servers.pool, "outbox") == 0 && count(t, r.servers.pool, "inbox") == 3 }, patience, pause)
}

// TestApp_NeedsNoRedisWithPostgresRecords keeps the records in PostgreSQL.
func TestApp_NeedsNoRedisWithPostgresRecords(t *testing.T) {
	t.Parallel()
	cfg := configFor(t, testenv.Postgres(t), "")
	require.ErrorContains(t, cfg.RequireServe(), "REDIS_URL must be set")
	cfg.Store = StorePostgres
	r := serveSeeded(t, cfg)
	order := r.placeOrder()
	first := r.call(http.MethodPost, "/v1/orders/"+order+"/payments", "pay", cardPayment("tok_visa"))
	second := r.call(http.MethodPost, "/v1/orders/"+order+"/payments", "pay", cardPayment("tok_visa"))
	require.Equal(t, http.StatusCreated, first.status, first.body)
	require.Equal(t, first.body, second.body)
	require.Equal(t, "true", second.header.Get("X-Idempotent-Replay"))
	require.NotContains(t, r.operations("/readyz").body, "redis")
	require.Positive(t, count(t, r.servers.pool, "idempotency_records"))
}

func count(t *testing.T, pool *pgxpool.Pool, table string) (n int) {
	t.Helper()
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&n))
	return n
}
