package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/oncepay/oncepay/internal/mailer"
)

var mailsDesc = prometheus.NewDesc("mails_total",
	"Attempts of this replica to send a mail: sent; put_off, to be tried again; or refused, for good.", []string{"verdict"}, nil)

// mails shows what this replica's mailer did; nil: there is none.
type mails func() map[mailer.Verdict]int64

var _ prometheus.Collector = mails(nil)

// Describe implements prometheus.Collector.
func (m mails) Describe(descs chan<- *prometheus.Desc) { descs <- mailsDesc }

// Collect implements prometheus.Collector.
func (m mails) Collect(metrics chan<- prometheus.Metric) {
	if m == nil {
		return
	}
	for verdict, n := range m() {
		metrics <- prometheus.MustNewConstMetric(mailsDesc, prometheus.CounterValue, float64(n), string(verdict))
	}
}
