package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/oncepay/oncepay/internal/admission"
)

// admissionCollector shows the statistics of the limiter as they are when asked for.
type admissionCollector struct{ limiter *admission.Limiter }

var _ prometheus.Collector = admissionCollector{}

var (
	admittedDesc = prometheus.NewDesc("requests_admitted_total", "Requests that were let in, by class.", []string{"class"}, nil)
	turnedDesc   = prometheus.NewDesc("requests_turned_away_total", "Requests that were answered 503 overloaded, by class.", []string{"class"}, nil)
)

// admissionGauges are read from one snapshot.
var admissionGauges = []struct {
	desc  *prometheus.Desc
	value func(admission.Stats) int
}{
	{admissionDesc("limit", "Slots that there are."), func(s admission.Stats) int { return s.Limit }},
	{admissionDesc("slots_in_use", "Slots that are held."), func(s admission.Stats) int { return s.InUse }},
	{admissionDesc("queue", "Requests that wait for a slot."), func(s admission.Stats) int { return s.Queued }},
	{admissionDesc("waiting", "Requests that wait, or may wait, for the provider or for another attempt."), func(s admission.Stats) int { return s.Waiting }},
	{admissionDesc("reading", "Requests whose body is being read."), func(s admission.Stats) int { return s.Reading }},
	{admissionDesc("replays", "Requests that are answered from a record without a slot."), func(s admission.Stats) int { return s.Replays }},
}

func admissionDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("admission_"+name, help, nil, nil)
}

// Describe sends what Collect may send.
func (admissionCollector) Describe(out chan<- *prometheus.Desc) {
	out <- admittedDesc
	out <- turnedDesc
	for _, g := range admissionGauges {
		out <- g.desc
	}
}

// Collect sends the statistics of this moment.
func (c admissionCollector) Collect(out chan<- prometheus.Metric) {
	stats := c.limiter.Stats()
	for _, class := range admission.Classes {
		out <- prometheus.MustNewConstMetric(admittedDesc, prometheus.CounterValue, float64(stats.Admitted[class]), class.String())
		out <- prometheus.MustNewConstMetric(turnedDesc, prometheus.CounterValue, float64(stats.TurnedAway[class]), class.String())
	}
	for _, g := range admissionGauges {
		out <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, float64(g.value(stats)))
	}
}

// budgetMetrics show how near accounts are to their budgets, without naming one.
func budgetMetrics(budget *admission.Budget) []prometheus.Collector {
	return []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "account_budget_used_ratio", Help: "The most that one account has used of its budget of kept answers; 1 is all.",
		}, func() float64 { return budget.Stats().Most }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "requests_over_budget_total", Help: "Requests that were answered 429 because their account had used up its budget.",
		}, func() float64 { return float64(budget.Stats().Refused) }),
	}
}
