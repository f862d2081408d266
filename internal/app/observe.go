package app

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/internal/app/metrics"
	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/httpapi"
	"github.com/oncepay/oncepay/internal/postgres"
)

// observeRequest counts a request that was answered, and names its span.
func (a *App) observeRequest(r *http.Request, route string, status int, took time.Duration) {
	a.metrics.ObserveRequest(r, route, status, took)
	nameSpan(r, route)
}

// observeCheck counts an idempotency check and logs it in one line and notes it in the request's
// span.
func (a *App) observeCheck(r *http.Request, route string, check idempotency.Check) {
	a.metrics.ObserveCheck(route, check)
	attrs := []slog.Attr{
		slog.String("event", "idempotency_check"), slog.String("key", check.Key), slog.String("endpoint", r.Method+" "+route),
		slog.String("result", string(check.Result)), slog.Float64("duration_ms", milliseconds(check.Duration)),
		slog.String("request_id", httpapi.RequestID(r.Context())),
	}
	if check.Err != nil {
		attrs = append(attrs, slog.String("error", check.Err.Error()))
	}
	a.log.LogAttrs(r.Context(), checkLevel(check.Result), "idempotency check", attrs...)
	noteCheck(r.Context(), a.cfg.Store, check)
}

// checkLevel raises what says that Redis is in trouble or a lease too short.
func checkLevel(result idempotency.Result) slog.Level {
	switch result {
	case idempotency.ResultUnavailable, idempotency.ResultBypassed, idempotency.ResultLost, idempotency.ResultIncomplete:
		return slog.LevelWarn
	default:
		return slog.LevelInfo
	}
}

// parts are those whose figures are read at each scrape.
func (a *App) parts(service *checkout.Service, store *postgres.Store) metrics.Parts {
	parts := metrics.Parts{
		Waiting: a.api.Waiting, Service: service.Stats, CountPayments: store.CountPayments, Reconciler: a.workers.reconciler,
		Relay: a.workers.relay, Consumers: a.workers.consumers, Admission: a.limits.admission, Budget: a.limits.budget, Mailer: a.workers.mailer,
		BreakerOpen: a.servers.isBreakerOpen, Timeline: a.servers.timeline, Log: a.log,
	}
	if a.servers.redis != nil {
		parts.Redis = map[string]redis.UniversalClient{"records": a.servers.redis, "events": a.servers.stream}
	}
	return parts
}
