package metrics

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/internal/background"
	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/wait"
)

// scrape returns what Prometheus would read.
func scrape(t *testing.T, h http.Handler) string {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	require.Equal(t, http.StatusOK, w.Code)
	return w.Body.String()
}

func TestMetrics_CountWhatIsObserved(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), "postgres://nobody@localhost/none") // which connects when it is asked
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	m := New(pool)
	require.Contains(t, scrape(t, m.Handler()), `provider_events_total{verdict="conflicting"} 0`, "the first one is an increase")

	for _, result := range []idempotency.Result{idempotency.ResultReplay, idempotency.ResultUnavailable, idempotency.ResultBypassed} {
		m.ObserveCheck("POST /v1/orders", idempotency.Check{Result: result, Repaired: result == idempotency.ResultReplay})
	}
	m.ObserveRequest(&http.Request{Method: "BREW"}, "POST /v1/orders", 201, time.Second)
	m.ObserveProviderEvent(checkout.ProviderEvent{}, checkout.VerdictConflicting)
	text := scrape(t, m.Handler())
	for _, line := range []string{
		`idempotency_checks_total{result="replay",route="POST /v1/orders"} 1`,
		"\nidempotency_replay_total 1",
		"\nidempotency_redis_error_total 2",
		"\nidempotency_conflict_total 0",
		"\nidempotency_repaired_total 1",
		`http_request_duration_seconds_count{method="other",route="POST /v1/orders",status="201"} 1`,
		`provider_events_total{verdict="conflicting"} 1`,
	} {
		require.Contains(t, text, line)
	}
}

// database is what counts payments, and may be away.
type database struct {
	checkout.ReconcileStore
	away     bool
	readings int
}

func (d *database) CardPayments() checkout.Operations[checkout.NewPayment, checkout.Payment] {
	return nil
}
func (d *database) CardRefunds() checkout.Operations[checkout.NewRefund, checkout.Refund] { return nil }

func (d *database) CountUnsettled(context.Context, time.Duration) (checkout.Unsettled, error) {
	if d.readings++; d.away {
		return checkout.Unsettled{}, errors.New("away")
	}
	return checkout.Unsettled{Processing: 3}, nil
}

func (d *database) countPayments(context.Context, time.Duration) (map[checkout.Status]int, error) {
	if d.away {
		return nil, errors.New("away")
	}
	return map[checkout.Status]int{checkout.StatusSucceeded: 5}, nil
}

func TestBacklog_ShowsOwnCountersWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := &database{}
		reconciler := checkout.NewReconciler(db, nil, nil, checkout.ReconcilerOptions{Schedule: background.Schedule{Log: slog.New(slog.DiscardHandler)}})
		registry := prometheus.NewRegistry()
		registry.MustRegister(&backlog{waiters: func() int { return 2 }, count: db.countPayments, reconciler: reconciler,
			attempts: func() checkout.ServiceStats { return checkout.ServiceStats{Takeovers: 7} }, log: slog.New(slog.DiscardHandler)})
		metrics := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})

		text := scrape(t, metrics)
		require.Contains(t, text, `payments{state="succeeded"} 5`)
		require.Contains(t, text, "\npayments_processing 3")
		_ = scrape(t, metrics)
		require.Equal(t, 1, db.readings, "two scrapers share a reading")

		db.away = true
		require.NoError(t, wait.Pause(t.Context(), backlogAge))
		text = scrape(t, metrics)
		require.Equal(t, 2, db.readings)
		require.NotContains(t, text, "\npayments")
		require.Contains(t, text, "\nidempotency_waiters 2")
		require.Contains(t, text, "\nidempotency_takeovers_total 7")
		require.Contains(t, text, "\nreconciler_settled_total 0")
	})
}
