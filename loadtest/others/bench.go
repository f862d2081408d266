package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v3"
	fiberkeys "github.com/gofiber/fiber/v3/middleware/idempotency"
	storage "github.com/gofiber/storage/redis/v3"
	"github.com/redis/go-redis/v9"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/redisstore"
)

// The benchmark compares middleware alone, on a handler that does nothing: each is a server of its
// own, and each has the defaults of those who made it.

// readTimeout bounds the header of a request.
const readTimeout = 10 * time.Second

// serveBench serves one of the servers on a free port of loopback, which it prints, until stdin
// ends: so it ends with the benchmark that has started it, however that ends.
func serveBench(ctx context.Context, system, redisURL string, stdin io.Reader, stdout io.Writer) error {
	start := benchServers[system]
	if start == nil {
		return fmt.Errorf("bench needs one of %v", slices.Sorted(maps.Keys(benchServers)))
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() { failed <- start(redisURL, l) }()
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		close(ended)
	}()
	fmt.Fprintln(stdout, l.Addr())
	select {
	case err := <-failed:
		return err
	case <-ended:
	case <-ctx.Done():
	}
	return l.Close()
}

// benchServers serve until the listener is closed.
var benchServers = map[string]func(redisURL string, l net.Listener) error{
	"none": func(_ string, l net.Listener) error { return serveHTTP(l, http.HandlerFunc(created)) },
	"oncepay": func(redisURL string, l net.Listener) error {
		client, err := redisstore.Open(redisURL)
		if err != nil {
			return err
		}
		once := idempotency.New(redisstore.New(client), idempotency.Always(idempotency.Policy{Required: true}), idempotency.WithSharedScope())
		return serveHTTP(l, once.Handler(http.HandlerFunc(created)))
	},
	"setnx": func(redisURL string, l net.Listener) error {
		return withRedis(redisURL, func(client *redis.Client) error {
			return serveHTTP(l, setNX{client, http.HandlerFunc(created)})
		})
	},
	"setnx-autopipeline": func(redisURL string, l net.Listener) error {
		return withRedis(redisURL, func(client *redis.Client) error {
			pipeline, err := client.AutoPipeline()
			if err != nil {
				return err
			}
			return serveHTTP(l, setNX{pipeline, http.HandlerFunc(created)})
		})
	},
	"fiber": func(redisURL string, l net.Listener) error {
		return withRedis(redisURL, func(client *redis.Client) error { return serveFiber(l, client) })
	},
}

func withRedis(url string, serve func(*redis.Client) error) error {
	client, err := openRedis(url)
	if err != nil {
		return err
	}
	return errors.Join(serve(client), client.Close())
}

func serveHTTP(l net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: readTimeout}
	return server.Serve(l)
}

// serveFiber has Fiber serve by itself, on fasthttp, and not behind net/http.
func serveFiber(l net.Listener, client *redis.Client) error {
	app := fiber.New()
	app.Use(fiberkeys.New(fiberkeys.Config{KeyHeader: headerKey, KeyHeaderValidate: validKey, Lifetime: answerTTL,
		Storage: storage.NewFromConnection(client)}))
	app.Use(func(c fiber.Ctx) error {
		c.Set("Content-Type", "application/json")
		return c.Status(http.StatusCreated).Send(nextOrder())
	})
	return app.Listener(l, fiber.ListenConfig{DisableStartupMessage: true})
}

// created is the handler behind each middleware.
func created(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(nextOrder()) // the client may be gone
}

var orders atomic.Int64

// nextOrder is another answer at each execution, so that a replay can be told from one.
func nextOrder() []byte {
	return fmt.Appendf(nil, `{"object":"order","status":"pending","number":%d}`, orders.Add(1))
}

// benchCommand runs `others bench SYSTEM REDIS_URL`.
func benchCommand(ctx context.Context, args []string, stdout io.Writer) error {
	if len(args) != 2 {
		return errors.New("bench needs a system and the URL of a Redis")
	}
	return serveBench(ctx, args[0], args[1], os.Stdin, stdout)
}
