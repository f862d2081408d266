package testenv

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
)

// redisDatabases is how many databases a shared server has: one for each test of a package, with
// room.
const redisDatabases = 4096

var lastDatabase atomic.Int64

// Redis returns the URL of an empty Redis database of its own, such as redis://127.0.0.1:40123/0.
// Where processes serve, it is a server of its own, started in some 30 ms; where containers do, a
// numbered database of a shared one. So a test that configures, fills up or stops the server takes
// RedisServer.
func Redis(t testing.TB) string {
	t.Helper()
	b := env.use(t)
	if b.name() == "native" {
		return newRedisServer(t, b).URL
	}
	server := env.get(t, &env.redis, func(ctx context.Context) (instance, error) {
		i, err := b.startRedis(ctx)
		if err == nil {
			reportRedis(ctx, b, i)
		}
		return i, err
	})
	number := lastDatabase.Add(1)
	if number >= redisDatabases {
		t.Fatalf("testenv: more than %d tests asked for a Redis database", redisDatabases-1)
	}
	return strings.TrimSuffix(server.url(), "/0") + "/" + strconv.FormatInt(number, 10)
}

// RedisServer starts a server for this test alone, which the test may stop. Settings are as on the
// command line: "--maxmemory", "1mb".
func RedisServer(t testing.TB, settings ...string) *Server {
	t.Helper()
	return newRedisServer(t, env.outageBackend(t), settings...)
}

func newRedisServer(t testing.TB, b backend, settings ...string) *Server {
	t.Helper()
	return newServer(t, func(ctx context.Context) (instance, error) {
		i, err := b.startRedis(ctx, settings...)
		if err == nil {
			reportRedis(ctx, b, i)
		}
		return i, err
	})
}

func reportRedis(ctx context.Context, b backend, i instance) {
	env.report("Redis " + redisVersion(ctx, i.addr()) + " " + b.name())
}

// redisClient makes a client without the library's own retries.
func redisClient(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true})
}

// redisVersion returns a version such as "7.0.15", or "(unknown version)".
func redisVersion(ctx context.Context, addr string) string {
	client := redisClient(addr)
	defer func() { _ = client.Close() }()
	info, _ := client.Info(ctx, "server").Result()
	for line := range strings.Lines(info) {
		if version, ok := strings.CutPrefix(line, "redis_version:"); ok {
			return strings.TrimSpace(version)
		}
	}
	return "(unknown version)"
}
