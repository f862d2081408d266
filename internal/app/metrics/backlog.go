package metrics

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
	// backlogAge is how old the database's figures may be: scrapers that come more often share one
	// reading.
	backlogAge = 5 * time.Second

	// paymentsWindow is how far back settled payments are counted: enough to see a trend, and not
	// the whole table.
	paymentsWindow = time.Hour

	// backlogTimeout bounds a reading: a scrape must not hang because the database does.
	backlogTimeout = time.Second
)

// backlog shows what waits to be done: requests for another one's answer, events to be published,
// payments to be settled. What the database counts is the same at every replica, and missing while
// the database is away.
type backlog struct {
	waiters    func() int
	attempts   func() checkout.ServiceStats
	count      func(ctx context.Context, since time.Duration) (map[checkout.Status]int, error)
	reconciler *checkout.Reconciler
	relay      *outbox.Relay // nil: there is none
	log        *slog.Logger

	mu        sync.Mutex
	read      time.Time
	payments  reading[map[checkout.Status]int]
	unsettled reading[checkout.ReconcilerStats] // of payments and refunds
	events    reading[outbox.RelayStats]
}

// reading is what was read last. A reading that failed still has what this process counts itself.
type reading[T any] struct {
	values   T
	complete bool // it has what the database counts, too
}

var _ prometheus.Collector = (*backlog)(nil)

func backlogDesc(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, nil, nil) }

func groupDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, []string{"group"}, nil)
}

var (
	waitersDesc    = backlogDesc("idempotency_waiters", "Requests that wait for another attempt with their key.")
	takeoversDesc  = backlogDesc("idempotency_takeovers_total", "Attempts at payments that went on where an earlier one had left off.")
	fencesDesc     = backlogDesc("idempotency_fence_failures_total", "Attempts that knew the outcome and found another one settling it.")
	paymentsDesc   = prometheus.NewDesc("payments", "Payments of the last hour by state, and all that are processing.", []string{"state"}, nil)
	processingDesc = backlogDesc("payments_processing", "Payments and refunds whose outcome is not settled yet.")
	overdueDesc    = backlogDesc("payments_overdue", "Those of them past PAYMENT_SETTLE_DEADLINE.")
	oldestDesc     = backlogDesc("payments_processing_oldest_seconds", "Age of the oldest of them.")
	settledDesc    = backlogDesc("reconciler_settled_total", "Payments and refunds that this replica's reconciler settled.")
	unknownDesc    = backlogDesc("reconciler_unknown_total", "Attempts of it after which the provider still had not said.")
	overtakenDesc  = backlogDesc("reconciler_overtaken_total", "Attempts of it whose fence failed: a newer one was at work.")
	depthDesc      = backlogDesc("outbox_depth", "Events that wait to be published, counted up to 100,000.")
	lagDesc        = backlogDesc("outbox_lag_seconds", "Age of the oldest of them.")
	publishedDesc  = backlogDesc("outbox_published_total", "Events that this replica published.")
	againDesc      = backlogDesc("outbox_republished_total", "Events that it published again, as a consumer group had not had them.")
	troublesDesc   = backlogDesc("outbox_troubles_total", "Passes of its relay that failed.")
	behindDesc     = groupDesc("consumer_lag_events", "Events that the consumer group has not had yet, counted up to 100,000.")
	behindForDesc  = groupDesc("consumer_lag_seconds", "Age of the oldest of them.")
	retryingDesc   = groupDesc("outbox_retrying", "Events that the consumer group refused, and that are tried again by themselves.")
	deadDesc       = groupDesc("outbox_dead", "Events that the consumer group refused too often: they wait for oncepay outbox retry.")
)

// Describe implements prometheus.Collector.
func (b *backlog) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{waitersDesc, takeoversDesc, fencesDesc, paymentsDesc, processingDesc, overdueDesc, oldestDesc, settledDesc, unknownDesc, overtakenDesc,
		depthDesc, lagDesc, publishedDesc, againDesc, troublesDesc, behindDesc, behindForDesc, retryingDesc, deadDesc} {
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
	attempts := b.attempts()
	counter(takeoversDesc, attempts.Takeovers)
	counter(fencesDesc, attempts.FencesLost)
	if b.payments.complete {
		for state, n := range b.payments.values {
			metrics <- prometheus.MustNewConstMetric(paymentsDesc, prometheus.GaugeValue, float64(n), string(state))
		}
	}
	unsettled := b.unsettled.values
	counter(settledDesc, unsettled.Settled)
	counter(unknownDesc, unsettled.Unknown)
	counter(overtakenDesc, unsettled.Overtaken)
	if b.unsettled.complete {
		gauge(processingDesc, float64(unsettled.Processing))
		gauge(overdueDesc, float64(unsettled.Overdue))
		gauge(oldestDesc, unsettled.Oldest.Seconds())
	}
	if b.relay == nil {
		return
	}
	events := b.events.values
	counter(publishedDesc, events.Published)
	counter(againDesc, events.Republished)
	counter(troublesDesc, events.Troubles)
	if b.events.complete {
		gauge(depthDesc, float64(events.Waiting))
		gauge(lagDesc, events.Oldest.Seconds())
		for group, lag := range events.Lags {
			for desc, value := range map[*prometheus.Desc]float64{behindDesc: float64(lag.Events),
				behindForDesc: lag.Oldest.Seconds(), retryingDesc: float64(lag.Retrying), deadDesc: float64(lag.Dead)} {
				metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, group)
			}
		}
	}
}

// refresh reads the figures when they are too old. What the database does not tell is not shown;
// the counters of this process are, as alerts about such an outage need them.
func (b *backlog) refresh() {
	if time.Since(b.read) < backlogAge {
		return
	}
	b.read = time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), backlogTimeout)
	defer cancel()
	b.payments = figures(ctx, b.log, "payments", func(ctx context.Context) (map[checkout.Status]int, error) {
		return b.count(ctx, paymentsWindow)
	})
	b.unsettled = figures(ctx, b.log, "reconciler", b.reconciler.Stats)
	if b.relay != nil {
		b.events = figures(ctx, b.log, "outbox", b.relay.Stats)
	}
}

// figures makes a reading, and logs an error.
func figures[T any](ctx context.Context, log *slog.Logger, of string, read func(context.Context) (T, error)) reading[T] {
	values, err := read(ctx)
	if err != nil {
		log.Debug("no figures", "of", of, "error", err)
	}
	return reading[T]{values, err == nil}
}
