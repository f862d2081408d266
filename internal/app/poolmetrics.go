package app

import (
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

// poolCollector shows the statistics of the PostgreSQL pool as they are when asked for.
type poolCollector struct{ pool *pgxpool.Pool }

var _ prometheus.Collector = poolCollector{}

// poolMetrics are read from one snapshot.
var poolMetrics = []struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*pgxpool.Stat) float64
}{
	{poolDesc("acquired_connections", "Connections in use."), prometheus.GaugeValue,
		func(s *pgxpool.Stat) float64 { return float64(s.AcquiredConns()) }},
	{poolDesc("idle_connections", "Connections at hand."), prometheus.GaugeValue,
		func(s *pgxpool.Stat) float64 { return float64(s.IdleConns()) }},
	{poolDesc("max_connections", "The most connections there may be."), prometheus.GaugeValue,
		func(s *pgxpool.Stat) float64 { return float64(s.MaxConns()) }},
	{poolDesc("acquires_total", "Connections handed out."), prometheus.CounterValue,
		func(s *pgxpool.Stat) float64 { return float64(s.AcquireCount()) }},
	{poolDesc("empty_acquires_total", "Connections that had to be waited for."), prometheus.CounterValue,
		func(s *pgxpool.Stat) float64 { return float64(s.EmptyAcquireCount()) }},
	{poolDesc("canceled_acquires_total", "Waits for a connection that were given up."), prometheus.CounterValue,
		func(s *pgxpool.Stat) float64 { return float64(s.CanceledAcquireCount()) }},
	{poolDesc("acquire_seconds_total", "Time spent until connections were handed out."), prometheus.CounterValue,
		func(s *pgxpool.Stat) float64 { return s.AcquireDuration().Seconds() }},
	{poolDesc("new_connections_total", "Connections opened."), prometheus.CounterValue,
		func(s *pgxpool.Stat) float64 { return float64(s.NewConnsCount()) }},
}

func poolDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("postgres_pool_"+name, help, nil, nil)
}

// Describe sends what Collect may send.
func (poolCollector) Describe(out chan<- *prometheus.Desc) {
	for _, m := range poolMetrics {
		out <- m.desc
	}
}

// Collect sends the statistics of this moment.
func (c poolCollector) Collect(out chan<- prometheus.Metric) {
	stat := c.pool.Stat()
	for _, m := range poolMetrics {
		out <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(stat))
	}
}
