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
	a.servers.redis, a.servers.redisHosts = redisstore.NewClient(forRecords), strings.Join(forRecords.Addrs, ",")

	if err := a.tracing.commands(a.servers.redis); err != nil {
		return fmt.Errorf("trace Redis: %w", err)
	}

	forEvents := *forRecords
	outbox.SetTimeouts(&forEvents)
	a.servers.stream = redisstore.NewClient(&forEvents)
	return nil
}

// openRecords opens the store that decides quickly on idempotency keys.
func (a *App) openRecords() error {
	if err := a.openRedis(); err != nil {
		return err
	}
	if a.servers.records != nil {
		return nil // the caller's; see WithRecords
	}
	if a.cfg.Store == StorePostgres {
		records := pgstore.New(a.servers.pool)
		a.servers.records, a.servers.closeRecords = records, records.Close
		return nil
	}
	options := []redisstore.Option{redisstore.WithGeneration(a.servers.timeline.Name)}
	for _, secret := range a.cfg.RecordSecrets {
		options = append(options, redisstore.WithSecrets([]byte(secret)))
	}
	records := redisstore.New(a.servers.redis, options...)
	a.servers.breaker = breaker.New(records, breaker.WithLogger(a.log))
	a.servers.records, a.servers.closeRecords = a.servers.breaker, func() { _ = records.Close() } // a subscription that may be broken already
	return nil
}

// isBreakerOpen reports whether Redis is taken to be away.
func (s *servers) isBreakerOpen() bool { return s.breaker != nil && s.breaker.Open() }

// pingRedis says whether Redis answers.
func (s *servers) pingRedis(ctx context.Context) error { return s.redis.Ping(ctx).Err() }
