package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/oncepay/oncepay/internal/outbox"
)

var consumedDesc = prometheus.NewDesc("events_consumed_total",
	"Events by consumer group and what came of them: handled had their effect, repeated had had it before.", []string{"group", "result"}, nil)

// consumers are this replica's, by group. They show what they did.
type consumers map[string]*outbox.Consumer

var _ prometheus.Collector = consumers(nil)

// Describe implements prometheus.Collector.
func (c consumers) Describe(descs chan<- *prometheus.Desc) { descs <- consumedDesc }

// Collect implements prometheus.Collector.
func (c consumers) Collect(metrics chan<- prometheus.Metric) {
	for group, consumer := range c {
		stats := consumer.Stats()
		for result, n := range map[string]int64{
			"handled": stats.Handled, "repeated": stats.Repeated, "failed": stats.Failed, "refused": stats.Refused,
			"unreadable": stats.Unreadable,
		} {
			metrics <- prometheus.MustNewConstMetric(consumedDesc, prometheus.CounterValue, float64(n), group, result)
		}
	}
}
