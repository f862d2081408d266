package metrics

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/oncepay/oncepay/internal/admission"
	"github.com/oncepay/oncepay/internal/app/timeline"
	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/mailer"
	"github.com/oncepay/oncepay/internal/outbox"
)

// Parts are those of a replica whose figures are read when asked for.
type Parts struct {
	Waiting       func() int // requests that wait for another attempt
	Service       func() checkout.ServiceStats
	CountPayments func(ctx context.Context, since time.Duration) (map[checkout.Status]int, error)
	Reconciler    *checkout.Reconciler
	Relay         *outbox.Relay               // nil: there is none
	Consumers     map[string]*outbox.Consumer // by group
	Mailer        *mailer.Mailer              // nil: there is none
	Admission     *admission.Limiter
	Budget        *admission.Budget
	Redis         map[string]redis.UniversalClient // by what it is for
	BreakerOpen   func() bool
	Timeline      *timeline.Timeline
	Log           *slog.Logger
}

// Watch adds the figures of the parts, which are made after the metrics.
func (m *Metrics) Watch(p Parts) {
	m.registry.MustRegister(
		&backlog{waiters: p.Waiting, attempts: p.Service, count: p.CountPayments, reconciler: p.Reconciler, relay: p.Relay, log: p.Log},
		consumers(p.Consumers), mails{p.Mailer}, admissionCollector{p.Admission}, redisPools(p.Redis), redisMemory{p.Redis["records"]},
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "idempotency_breaker_open", Help: "1 while Redis does not answer and is not asked but for a probe now and then.",
		}, func() float64 { return oneIf(p.BreakerOpen()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "postgres_timeline", Help: "PostgreSQL's timeline: a failover or a restore begins another one.",
		}, p.Timeline.Number),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "events_lost_total", Help: "Events in the stream that PostgreSQL has lost, with what they tell of.",
		}, p.Timeline.Lost))
	m.registry.MustRegister(budgetMetrics(p.Budget)...)
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
