package metrics

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/oncepay/oncepay/idempotency/redisstore"
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

// redisPools shows the statistics of the pools of Redis connections, by what they are for.
type redisPools map[string]redis.UniversalClient

var _ prometheus.Collector = redisPools(nil)

// redisPoolMetrics are read from one snapshot.
var redisPoolMetrics = []struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*redis.PoolStats) float64
}{
	{redisPoolDesc("connections", "Connections that are open."), prometheus.GaugeValue,
		func(s *redis.PoolStats) float64 { return float64(s.TotalConns) }},
	{redisPoolDesc("idle_connections", "Connections at hand."), prometheus.GaugeValue,
		func(s *redis.PoolStats) float64 { return float64(s.IdleConns) }},
	{redisPoolDesc("hits_total", "Connections that were at hand when needed."), prometheus.CounterValue,
		func(s *redis.PoolStats) float64 { return float64(s.Hits) }},
	{redisPoolDesc("misses_total", "Connections that had to be opened when needed."), prometheus.CounterValue,
		func(s *redis.PoolStats) float64 { return float64(s.Misses) }},
	{redisPoolDesc("timeouts_total", "Waits for a connection that took too long."), prometheus.CounterValue,
		func(s *redis.PoolStats) float64 { return float64(s.Timeouts) }},
	{redisPoolDesc("stale_total", "Connections that were found broken."), prometheus.CounterValue,
		func(s *redis.PoolStats) float64 { return float64(s.StaleConns) }},
}

func redisPoolDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("redis_pool_"+name, help, []string{"pool"}, nil)
}

// Describe sends what Collect may send.
func (redisPools) Describe(out chan<- *prometheus.Desc) {
	for _, m := range redisPoolMetrics {
		out <- m.desc
	}
}

// Collect sends the statistics of this moment.
func (p redisPools) Collect(out chan<- prometheus.Metric) {
	for name, client := range p {
		stats := client.PoolStats()
		for _, m := range redisPoolMetrics {
			out <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(stats), name)
		}
	}
}

// redisMemory shows how full Redis is, as it is when asked for. Nothing is shown while Redis is
// away.
type redisMemory struct{ client redis.UniversalClient }

var _ prometheus.Collector = redisMemory{}

var redisMemoryDesc = prometheus.NewDesc("redis_memory_used_ratio", "The part of its maxmemory that Redis uses; 1 is full, 0 that there is no maxmemory.", nil, nil)

// Describe sends what Collect may send.
func (redisMemory) Describe(out chan<- *prometheus.Desc) { out <- redisMemoryDesc }

// Collect asks Redis, for as long as a scrape may take.
func (m redisMemory) Collect(out chan<- prometheus.Metric) {
	if m.client == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), backlogTimeout)
	defer cancel()
	if use, err := redisstore.MemoryUse(ctx, m.client); err == nil {
		out <- prometheus.MustNewConstMetric(redisMemoryDesc, prometheus.GaugeValue, use)
	}
}
