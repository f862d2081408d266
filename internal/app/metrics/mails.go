package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/oncepay/oncepay/internal/mailer"
)

var (
	mailsDesc = prometheus.NewDesc("mails_total",
		"Attempts of this replica to send a mail: sent; put_off, to be tried again; or refused, for good.", []string{"verdict"}, nil)
	overdueMailsDesc = prometheus.NewDesc("mails_overdue_seconds", "For how long the earliest mail has been due.", nil, nil)
)

// mails shows what this replica's mailer did, and what it has not done yet; nil: there is none.
type mails struct{ *mailer.Mailer }

var _ prometheus.Collector = mails{}

// Describe implements prometheus.Collector.
func (m mails) Describe(descs chan<- *prometheus.Desc) {
	descs <- mailsDesc
	descs <- overdueMailsDesc
}

// Collect implements prometheus.Collector.
func (m mails) Collect(metrics chan<- prometheus.Metric) {
	if m.Mailer == nil {
		return
	}
	for verdict, n := range m.Stats() {
		metrics <- prometheus.MustNewConstMetric(mailsDesc, prometheus.CounterValue, float64(n), string(verdict))
	}
	metrics <- prometheus.MustNewConstMetric(overdueMailsDesc, prometheus.GaugeValue, m.Overdue().Seconds())
}
