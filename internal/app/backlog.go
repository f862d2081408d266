package app

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/outbox"
)

const (
	// backlogAge is how old the database's figures may be: scrapers that come more often share one reading.
	backlogAge = 5 * time.Second

	// backlogTimeout bounds a reading: a scrape must not hang because the database does.
	backlogTimeout = time.Second
)

// backlog shows what waits to be done: requests for another one's answer, events to be published, payments to be settled. What comes
// from the database is the same at every replica, and missing while the database is away.
type backlog struct {
	waiters    func() int
	reconciler *checkout.Reconciler
	relay      *outbox.Relay // nil: there is none
	log        *slog.Logger

	mu       sync.Mutex
	read     time.Time
	payments *checkout.ReconcilerStats // nil: unknown
	events   *outbox.RelayStats        // nil: unknown, or no relay
}

var _ prometheus.Collector = (*backlog)(nil)

// watch adds the figures of the parts that were made after the metrics.
func (m *metrics) watch(a *App) {
	m.registry.MustRegister(&backlog{waiters: a.api.Waiting, reconciler: a.reconciler, relay: a.relay, log: a.log}, a.consumers,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "idempotency_breaker_open", Help: "1 while Redis does not answer and is not asked but for a probe now and then.",
		}, a.breakerOpen))
}

func backlogDesc(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, nil, nil) }

var (
	waitersDesc    = backlogDesc("idempotency_waiters", "Requests that wait for another attempt with their key.")
	processingDesc = backlogDesc("payments_processing", "Payments and refunds whose outcome is not settled yet.")
	overdueDesc    = backlogDesc("payments_overdue", "Those of them past PAYMENT_SETTLE_DEADLINE.")
	oldestDesc     = backlogDesc("payments_processing_oldest_seconds", "Age of the oldest of them.")
	settledDesc    = backlogDesc("reconciler_settled_total", "Payments and refunds that this replica's reconciler settled.")
	unknownDesc    = backlogDesc("reconciler_unknown_total", "Attempts of it after which the provider still had not said.")
	overtakenDesc  = backlogDesc("reconciler_overtaken_total", "Attempts of it whose fence failed: a newer one was at work.")
	depthDesc      = backlogDesc("outbox_depth", "Events that wait to be published.")
	lagDesc        = backlogDesc("outbox_lag_seconds", "Age of the oldest of them.")
	deadDesc       = backlogDesc("outbox_dead", "Events that were refused too often; see oncepay outbox list.")
	publishedDesc  = backlogDesc("outbox_published_total", "Events that this replica published.")
)

// Describe implements prometheus.Collector.
func (b *backlog) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{waitersDesc, processingDesc, overdueDesc, oldestDesc, settledDesc, unknownDesc, overtakenDesc,
		depthDesc, lagDesc, deadDesc, publishedDesc} {
		descs <- desc
	}
}

// Collect implements prometheus.Collector.
func (b *backlog) Collect(metrics chan<- prometheus.Metric) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refresh()
	gauge := func(desc *prometheus.Desc, value float64) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value)
	}
	counter := func(desc *prometheus.Desc, value int64) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(value))
	}
	gauge(waitersDesc, float64(b.waiters()))
	if b.payments != nil {
		gauge(processingDesc, float64(b.payments.Processing))
		gauge(overdueDesc, float64(b.payments.Overdue))
		gauge(oldestDesc, b.payments.Oldest.Seconds())
		counter(settledDesc, b.payments.Settled)
		counter(unknownDesc, b.payments.Unknown)
		counter(overtakenDesc, b.payments.Overtaken)
	}
	if b.events != nil {
		gauge(depthDesc, float64(b.events.Waiting))
		gauge(lagDesc, b.events.Oldest.Seconds())
		gauge(deadDesc, float64(b.events.Dead))
		counter(publishedDesc, b.events.Published)
	}
}

// refresh reads the figures when they are too old.
func (b *backlog) refresh() {
	if time.Since(b.read) < backlogAge {
		return
	}
	b.read, b.payments, b.events = time.Now(), nil, nil
	ctx, cancel := context.WithTimeout(context.Background(), backlogTimeout)
	defer cancel()
	payments, err := b.reconciler.Stats(ctx)
	if err != nil {
		b.log.Debug("no figures of the payments", "error", err)
		return
	}
	b.payments = &payments
	if b.relay == nil {
		return
	}
	events, err := b.relay.Stats(ctx)
	if err != nil {
		b.log.Debug("no figures of the outbox", "error", err)
		return
	}
	b.events = &events
}
