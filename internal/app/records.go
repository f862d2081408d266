package app

import (
	"context"
	"fmt"

	"github.com/oncepay/oncepay/idempotency/pgstore"
	"github.com/oncepay/oncepay/idempotency/redisstore"
)

// Values of Config.Store.
const (
	StoreRedis    = "redis"
	StorePostgres = "postgres"
)

// openRecords opens the store that decides quickly on idempotency keys.
func (a *App) openRecords() (err error) {
	if a.cfg.RedisURL != "" {
		if a.redis, err = redisstore.Open(a.cfg.RedisURL); err != nil {
			return fmt.Errorf("configuration: REDIS_URL: %w", err)
		}
	}
	if a.cfg.Store == StorePostgres {
		records := pgstore.New(a.pool)
		a.records, a.closeRecords = records, records.Close
		return nil
	}
	records := redisstore.New(a.redis)
	a.records, a.closeRecords = records, func() { _ = records.Close() } // a subscription that may be broken already
	return nil
}

// pingRedis says whether Redis answers.
func (a *App) pingRedis(ctx context.Context) error { return a.redis.Ping(ctx).Err() }
