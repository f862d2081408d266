package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
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
// ends: so it ends with the benchmark that has started it, however that ends. The arguments are a
// system and the URL of a Redis.
func serveBench(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error {
	if len(args) != 2 || benchServers[args[0]] == nil {
		return fmt.Errorf("bench needs one of %v and the URL of a Redis", slices.Sorted(maps.Keys(benchServers)))
	}
	client, err := openRedis(args[1])
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	serve, err := benchServers[args[0]](client, args[1])
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() { failed <- serve(l) }()
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
var benchServers = map[string]func(client *redis.Client, url string) (serve func(net.Listener) error, err error){
	"none": func(*redis.Client, string) (func(net.Listener) error, error) {
		return serveHTTP(http.HandlerFunc(created)), nil
	},
	"oncepay": func(_ *redis.Client, url string) (func(net.Listener) error, error) {
		client, err := redisstore.Open(url)
		if err != nil {
			return nil, err
		}
		once := idempotency.New(redisstore.New(client), idempotency.Always(idempotency.Policy{Required: true}), idempotency.WithSharedScope())
		return serveHTTP(once.Handler(http.HandlerFunc(created))), nil
	},
	"setnx": func(client *redis.Client, _ string) (func(net.Listener) error, error) {
		return serveHTTP(setNX{client, http.HandlerFunc(created)}), nil
	},
	"setnx-autopipeline": func(client *redis.Client, _ string) (func(net.Listener) error, error) {
		pipeline, err := client.AutoPipeline()
		return serveHTTP(setNX{pipeline, http.HandlerFunc(created)}), err
	},
	"fiber": func(client *redis.Client, _ string) (func(net.Listener) error, error) { return serveFiber(client), nil },
}

func serveHTTP(handler http.Handler) func(net.Listener) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: readTimeout}
	return server.Serve
}

// serveFiber has Fiber serve by itself, on fasthttp, and not behind net/http.
func serveFiber(client *redis.Client) func(net.Listener) error {
	app := fiber.New()
	app.Use(fiberkeys.New(fiberkeys.Config{KeyHeader: headerKey, KeyHeaderValidate: validKey, Lifetime: answerTTL,
		Storage: storage.NewFromConnection(client)}))
	app.Use(func(c fiber.Ctx) error {
		c.Set("Content-Type", "application/json")
		return c.Status(http.StatusCreated).Send(nextOrder())
	})
	return func(l net.Listener) error { return app.Listener(l, fiber.ListenConfig{DisableStartupMessage: true}) }
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
