package app

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/oncepay/oncepay/internal/admission"
	"github.com/oncepay/oncepay/internal/checkout"
)

const (
	// backgroundConns are the connections to PostgreSQL that requests leave to the workers, the
	// checks of /readyz and the look-ups of API keys. A request uses a connection only while it
	// holds a slot, so under overload those nearly never wait. The exceptions are requests that
	// come back from the provider, and those that decision 0019 lets in without a slot.
	backgroundConns = 4

	// lookupConns are those of them that look-ups of records may take if PostgreSQL has the
	// records.
	lookupConns = backgroundConns / 2
)

// recordLookups is how many records are looked up at a time for requests without a slot; zero: any
// number, as they use no connection to PostgreSQL.
func (a *App) recordLookups() int64 {
	if a.cfg.Store == StorePostgres {
		return lookupConns
	}
	return 0
}

// parkingGateway gives the slot of a request back while the provider is asked, which may take long
// and costs the replica nothing.
type parkingGateway struct{ gateway checkout.Gateway }

var _ checkout.Gateway = parkingGateway{}

func (g parkingGateway) Charge(ctx context.Context, r checkout.ChargeRequest) checkout.GatewayResult {
	defer admission.Park(ctx)()
	return g.gateway.Charge(ctx, r)
}

func (g parkingGateway) FindCharge(ctx context.Context, r checkout.ChargeRequest) checkout.GatewayResult {
	defer admission.Park(ctx)()
	return g.gateway.FindCharge(ctx, r)
}

func (g parkingGateway) Refund(ctx context.Context, r checkout.RefundRequest) checkout.GatewayResult {
	defer admission.Park(ctx)()
	return g.gateway.Refund(ctx, r)
}

func (g parkingGateway) FindRefund(ctx context.Context, r checkout.RefundRequest) checkout.GatewayResult {
	defer admission.Park(ctx)()
	return g.gateway.FindRefund(ctx, r)
}

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
func (a *App) budgetMetrics() []prometheus.Collector {
	return []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "account_budget_used_ratio", Help: "The most that one account has used of its budget of kept answers; 1 is all.",
		}, func() float64 { return a.budget.Stats().Most }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "requests_over_budget_total", Help: "Requests that were answered 429 because their account had used up its budget.",
		}, func() float64 { return float64(a.budget.Stats().Refused) }),
	}
}
