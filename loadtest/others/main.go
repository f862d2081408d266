// Command others answers oncepay's API behind other ways of treating idempotency keys, so that a
// fault campaign can be run on them: the handlers, the database and the endpoints are oncepay's,
// and what stands in front of them is chosen by SYSTEM. It takes the place of "oncepay serve" in a
// stack; see ../OTHERS.md. "others bench" serves one middleware on a handler that does nothing, for
// ../bench.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/bsm/redislock"
	"github.com/caarlos0/env/v11"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/oncepay/oncepay/idempotency/memstore"
	"github.com/oncepay/oncepay/internal/app"
)

// redisTimeout is short enough for a retry within the time that a client waits. All else of the
// client is go-redis's default.
const redisTimeout = time.Second

// systems are those that can be chosen, with what they keep in Redis, before the handlers. They
// decide which requests are executed; each of those has to go through everyRequest. built is
// another one.
var systems = map[string]func(*redis.Client, http.Handler) http.Handler{
	"none":  func(_ *redis.Client, next http.Handler) http.Handler { return next },
	"fiber": func(client *redis.Client, next http.Handler) http.Handler { return fiberFront(client, nil, next) },
	"fiber-lock": func(client *redis.Client, next http.Handler) http.Handler {
		return fiberFront(client, &redisLock{locks: redislock.New(client)}, next)
	},
	"setnx": func(client *redis.Client, next http.Handler) http.Handler { return setNX{client, next} },
}

// built is the service that is built on the authority. It needs no Redis.
const built = "authority"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	if err := run(ctx, os.Args[1:], os.Environ(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "others:", err)
		os.Exit(1)
	}
}

// run is the program: args without its name, environ as os.Environ gives it.
func run(ctx context.Context, args, environ []string, stdout io.Writer) error {
	switch {
	case len(args) > 0 && args[0] == "bench":
		return serveBench(ctx, args[1:], os.Stdin, stdout)
	case !slices.Equal(args, []string{"serve"}):
		return errors.New("the commands are serve and bench")
	}
	cfg, err := app.ParseConfig(environ)
	if err != nil {
		return err
	}
	client, err := openRedis(cfg.RedisURL)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	system, err := choose(ctx, environ, cfg.DatabaseURL, client)
	if err != nil {
		return err
	}
	log := cfg.NewLogger(stdout)
	app.QuietRedis(log)
	// Each execution has a key of its own, so that oncepay's own records never matter; in memory
	// they can't get in the way either.
	replica, err := app.New(ctx, cfg, log, app.WithFront(system), app.WithRecords(memstore.New()))
	if err != nil {
		return err
	}
	return replica.Serve(ctx)
}

func choose(ctx context.Context, environ []string, database string, client *redis.Client) (func(http.Handler) http.Handler, error) {
	name := env.ToMap(environ)["SYSTEM"]
	if name == built {
		pool, err := pgxpool.New(ctx, database)
		if err != nil {
			return nil, fmt.Errorf("DATABASE_URL: %w", err)
		}
		context.AfterFunc(ctx, pool.Close)
		return newOutside(ctx, pool)
	}
	if systems[name] == nil {
		return nil, fmt.Errorf("SYSTEM must be one of %v", append(slices.Sorted(maps.Keys(systems)), built))
	}
	return func(next http.Handler) http.Handler { return systems[name](client, everyRequest(next)) }, nil
}

func openRedis(url string) (*redis.Client, error) {
	options, err := redis.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("REDIS_URL: %w", err)
	}
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout = redisTimeout, redisTimeout, redisTimeout
	return redis.NewClient(options), nil
}
