package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/authority"
	"github.com/oncepay/oncepay/idempotency/redisstore"
	"github.com/oncepay/oncepay/internal/postgres"
	"github.com/oncepay/oncepay/internal/wait"
)

const (
	// askTimeout bounds one question to a server that may be away.
	askTimeout = 2 * time.Second

	// askInterval is the pause between questions: short against a database's start.
	askInterval = 200 * time.Millisecond

	// remindInterval is how often the log says again what we wait for.
	remindInterval = 5 * time.Second

	// redisPatience is how long the start waits for Redis. Without it payments are answered 503,
	// but everything else works, so a replica is of use; and it notices by itself when Redis comes.
	redisPatience = 5 * time.Second
)

// awaitServers returns when the replica can serve.
func (a *App) awaitServers(ctx context.Context) error {
	if err := awaitPostgres(ctx, a.servers.pool, a.cfg.StartupDeadline, a.log); err != nil {
		return err
	}
	if err := a.awaitSchema(ctx); err != nil {
		return err
	}
	if err := errors.Join(a.refusePowers(ctx), a.refuseDemoKeys(ctx)); err != nil {
		return err
	}
	if err := a.workers.apiKeys.Refresh(ctx); err != nil {
		return fmt.Errorf("read the API keys: %w", err)
	}
	if a.cfg.Store != StoreRedis {
		return nil
	}
	return a.awaitRedis(ctx)
}

// awaitPostgres returns when PostgreSQL answers and a transaction works, and logs that it waits. It
// does not wait if that would not help. The error after limit says what the last answer was.
func awaitPostgres(ctx context.Context, pool *pgxpool.Pool, limit time.Duration, log *slog.Logger) error {
	server := pool.Config().ConnConfig
	what := "PostgreSQL at " + net.JoinHostPort(server.Host, strconv.Itoa(int(server.Port)))
	return await(ctx, log, what, limit, func(ctx context.Context) error {
		err := authority.CheckPool(ctx, pool)
		if postgres.IsPermanent(err) {
			return wait.Stop(fmt.Errorf("PostgreSQL does not accept the settings in DATABASE_URL: %w", err))
		}
		return err
	})
}

// awaitSchema waits for a migration that may be running at the same time.
func (a *App) awaitSchema(ctx context.Context) error {
	return await(ctx, a.log, "the database schema", a.cfg.StartupDeadline, func(ctx context.Context) error {
		return postgres.CheckSchema(ctx, a.servers.pool)
	})
}

// awaitRedis fails when Redis is there and too old, and only warns when it is away.
func (a *App) awaitRedis(ctx context.Context) error {
	var unusable error
	limit := min(redisPatience, a.cfg.StartupDeadline)
	err := await(ctx, a.log, "Redis at "+a.servers.redisHosts, limit, func(ctx context.Context) error {
		err := redisstore.CheckServer(ctx, a.servers.redis)
		if err != nil && !errors.Is(err, idempotency.ErrUnavailable) {
			unusable = err
			return nil
		}
		return err
	})
	switch {
	case unusable != nil:
		return unusable
	case ctx.Err() != nil:
		return err
	case err == nil:
		a.checkMemory(ctx)
	default:
		a.log.Error("starting without Redis: payments, refunds and top-ups are answered 503 until it is back", "error", err)
	}
	return nil
}

// checkMemory says so loudly when Redis may forget keys before their time, so that PostgreSQL
// decides on what came back, at its cost; or when nothing bounds what it holds.
func (a *App) checkMemory(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	policy, err := redisstore.EvictionPolicy(ctx, a.servers.redis)
	switch {
	case err != nil || policy == "":
		a.log.Warn("can't tell whether Redis evicts keys; its maxmemory-policy should be noeviction", "error", err)
	case policy != redisstore.NoEviction:
		a.log.Error("Redis evicts keys when it is full, idempotency keys and events too: set maxmemory-policy noeviction",
			"maxmemory_policy", policy)
	}
	if use, err := redisstore.MemoryUse(ctx, a.servers.redis); err == nil && use == 0 {
		a.log.Warn("nothing bounds the memory of Redis, and no alert warns before it is full: set maxmemory")
	}
}

// await asks until the answer is nil, and logs now and then that it waits. The error after limit
// says what the last answer was.
func await(ctx context.Context, log *slog.Logger, what string, limit time.Duration, ask func(context.Context) error) error {
	began := time.Now()
	var reminded time.Time
	err := wait.For(ctx, limit, askInterval, func(ctx context.Context) error {
		err := askOnce(ctx, ask)
		if err != nil && ctx.Err() == nil && time.Since(reminded) >= remindInterval {
			reminded = time.Now()
			log.Warn("waiting for "+what, "waited", time.Since(began).Round(time.Second).String(), "limit", limit.String(), "error", err)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("waited %s for %s: %w", time.Since(began).Round(time.Millisecond), what, err)
	}
	return nil
}

func askOnce(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return ask(ctx)
}
