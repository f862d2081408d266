package app

import (
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/httpapi"
)

// requestBuckets, in seconds, are fine around the 50 ms that a new order may take, and reach to the
// payment deadline.
var requestBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 15, 30, 60}

// checkBuckets, in seconds: a check is one round trip to Redis, or its timeout.
var checkBuckets = []float64{.00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2}

// metrics are what a replica counts. Labels come from small fixed sets: never keys, accounts or
// paths.
type metrics struct {
	registry       *prometheus.Registry
	checks         *prometheus.CounterVec
	watched        map[idempotency.Result]prometheus.Counter // the results that people watch, by names of their own
	checkSeconds   *prometheus.HistogramVec
	repaired       prometheus.Counter
	requestSeconds *prometheus.HistogramVec
	providerEvents *prometheus.CounterVec
}

func newMetrics(pool *pgxpool.Pool) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(), // not the global one: a test runs several replicas
		checks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "idempotency_checks_total", Help: "Idempotency checks by their result and the route's pattern.",
		}, []string{"result", "route"}),
		checkSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "idempotency_check_duration_seconds", Help: "Time spent on idempotency, the handler's time not included.",
			Buckets: checkBuckets,
		}, []string{"result"}),
		repaired: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "idempotency_repaired_total", Help: "Damaged records that a request replaced; PostgreSQL decided.",
		}),
		requestSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "http_request_duration_seconds", Help: "Time until a request was answered.", Buckets: requestBuckets,
		}, []string{"method", "route", "status"}),
		providerEvents: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "provider_events_total", Help: "Provider events by what they led to; a person must look into conflicting ones.",
		}, []string{"verdict"}),
	}
	for _, verdict := range []checkout.Verdict{checkout.VerdictSettled, checkout.VerdictConfirmed, checkout.VerdictConflicting,
		checkout.VerdictUnknown, checkout.VerdictDuplicate} {
		m.providerEvents.WithLabelValues(string(verdict)) // so that the first one is an increase
	}
	m.watched = watchedResults(m.registry)
	m.registry.MustRegister(m.providerEvents, m.checks, m.checkSeconds, m.repaired, m.requestSeconds, poolCollector{pool},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// watchedResults counts some results without a label, for dashboards and alerts. Several results
// may share a counter.
func watchedResults(registry *prometheus.Registry) map[idempotency.Result]prometheus.Counter {
	counters := map[idempotency.Result]prometheus.Counter{}
	count := func(name, help string, results ...idempotency.Result) {
		counter := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		registry.MustRegister(counter)
		for _, result := range results {
			counters[result] = counter
		}
	}
	count("idempotency_replay_total", "Requests that got the answer that was given before.", idempotency.ResultReplay)
	count("idempotency_conflict_total", "Requests answered 409 because another attempt was in progress.", idempotency.ResultConflict)
	count("idempotency_mismatch_total", "Requests answered 422 because their key belongs to another request.", idempotency.ResultMismatch)
	count("idempotency_processing_timeout_total", "Handlers that lost their lease before they had answered.", idempotency.ResultLost)
	count("idempotency_redis_error_total", "Checks in which a read or a write of the store failed.",
		idempotency.ResultUnavailable, idempotency.ResultBypassed, idempotency.ResultIncomplete)
	return counters
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

func (m *metrics) observeRequest(r *http.Request, route string, status int, took time.Duration) {
	m.requestSeconds.WithLabelValues(knownMethod(r.Method), route, strconv.Itoa(status)).Observe(took.Seconds())
}

func (m *metrics) observeProviderEvent(_ checkout.ProviderEvent, verdict checkout.Verdict) {
	m.providerEvents.WithLabelValues(string(verdict)).Inc()
}

// knownMethod keeps what clients make up out of the labels.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodHead, http.MethodOptions:
		return method
	}
	return "other"
}

// observeRequest counts a request that was answered, and names its span.
func (a *App) observeRequest(r *http.Request, route string, status int, took time.Duration) {
	a.metrics.observeRequest(r, route, status, took)
	nameSpan(r, route)
}

// observeCheck counts an idempotency check and logs it in one line and notes it in the request's
// span.
func (a *App) observeCheck(r *http.Request, route string, check idempotency.Check) {
	a.metrics.checks.WithLabelValues(string(check.Result), route).Inc()
	a.metrics.checkSeconds.WithLabelValues(string(check.Result)).Observe(check.Duration.Seconds())
	if counter := a.metrics.watched[check.Result]; counter != nil {
		counter.Inc()
	}
	if check.Repaired {
		a.metrics.repaired.Inc()
	}

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
