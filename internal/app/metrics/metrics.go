// Package metrics counts and measures what a replica does, for Prometheus.
package metrics

import (
	"net/http"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/internal/checkout"
)

// requestBuckets, in seconds, are fine around the 50 ms that a new order may take, and reach to the
// payment deadline.
var requestBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 15, 30, 60}

// checkBuckets, in seconds: a check is one round trip to Redis, or its timeout.
var checkBuckets = []float64{.00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2}

// Metrics are what a replica counts. Labels come from small fixed sets: never keys, accounts or
// paths.
type Metrics struct {
	registry       *prometheus.Registry
	checks         *prometheus.CounterVec
	watched        map[idempotency.Result]prometheus.Counter // the results that people watch, by names of their own
	checkSeconds   *prometheus.HistogramVec
	repaired       prometheus.Counter
	requestSeconds *prometheus.HistogramVec
	providerEvents *prometheus.CounterVec
}

// New returns the metrics of a replica with this pool. Add the other parts by Watch.
func New(pool *pgxpool.Pool) *Metrics {
	m := &Metrics{
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

// Handler answers scrapes.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// ObserveRequest counts a request that was answered.
func (m *Metrics) ObserveRequest(r *http.Request, route string, status int, took time.Duration) {
	m.requestSeconds.WithLabelValues(KnownMethod(r.Method), route, strconv.Itoa(status)).Observe(took.Seconds())
}

// ObserveCheck counts an idempotency check.
func (m *Metrics) ObserveCheck(route string, check idempotency.Check) {
	m.checks.WithLabelValues(string(check.Result), route).Inc()
	m.checkSeconds.WithLabelValues(string(check.Result)).Observe(check.Duration.Seconds())
	if counter := m.watched[check.Result]; counter != nil {
		counter.Inc()
	}
	if check.Repaired {
		m.repaired.Inc()
	}
}

// ObserveProviderEvent counts a provider event by what it led to.
func (m *Metrics) ObserveProviderEvent(_ checkout.ProviderEvent, verdict checkout.Verdict) {
	m.providerEvents.WithLabelValues(string(verdict)).Inc()
}

// KnownMethod keeps what clients make up out of labels and names.
func KnownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodHead, http.MethodOptions:
		return method
	}
	return "other"
}
