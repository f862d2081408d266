package app

import (
	"context"
	"fmt"
	"strings"

	"github.com/oncepay/oncepay/idempotency/breaker"
	"github.com/oncepay/oncepay/idempotency/pgstore"
	"github.com/oncepay/oncepay/idempotency/redisstore"
	"github.com/oncepay/oncepay/internal/outbox"
)

// Values of Config.Store.
const (
	StoreRedis    = "redis"
	StorePostgres = "postgres"
)

// openRedis makes the clients of Redis, if there is one: one for records, which requests wait for,
// and one for events, which has time.
func (a *App) openRedis() error {
	if a.cfg.RedisURL == "" {
		return nil
	}
	forRecords, err := redisstore.Options(a.cfg.RedisURL)
	if err != nil {
		return fmt.Errorf("configuration: REDIS_URL: %w", err)
	}
	a.redis, a.redisHosts = redisstore.NewClient(forRecords), strings.Join(forRecords.Addrs, ",")

	if err := a.tracing.commands(a.redis); err != nil {
		return fmt.Errorf("trace Redis: %w", err)
	}

	forEvents := *forRecords
	outbox.SetTimeouts(&forEvents)
	a.stream = redisstore.NewClient(&forEvents)
	return nil
}

// openRecords opens the store that decides quickly on idempotency keys.
func (a *App) openRecords() error {
	if err := a.openRedis(); err != nil {
		return err
	}
	if a.records != nil {
		return nil // the caller's; see WithRecords
	}
	if a.cfg.Store == StorePostgres {
		records := pgstore.New(a.pool)
		a.records, a.closeRecords = records, records.Close
		return nil
	}
	records := redisstore.New(a.redis, redisstore.WithGeneration(a.timeline.name))
	a.breaker = breaker.New(records, breaker.WithLogger(a.log))
	a.records, a.closeRecords = a.breaker, func() { _ = records.Close() } // a subscription that may be broken already
	return nil
}

// breakerOpen is 1 while Redis is taken to be away, and 0 otherwise.
func (a *App) breakerOpen() float64 {
	if a.breaker != nil && a.breaker.Open() {
		return 1
	}
	return 0
}

// pingRedis says whether Redis answers.
func (a *App) pingRedis(ctx context.Context) error { return a.redis.Ping(ctx).Err() }
