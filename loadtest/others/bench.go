package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/redis/go-redis/v9"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/redisstore"
)

// The benchmark compares middleware alone, on a handler that does nothing: each is a server of its
// own, and each has the defaults of those who made it.

// readTimeout bounds the header of a request.
const readTimeout = 10 * time.Second

var benchSystems = []string{"none", "oncepay", "setnx", "setnx-autopipeline", "fiber"}

// serveBench serves one of the systems on a free port of loopback, which it prints, until stdin
// ends: so it ends with the benchmark that has started it, however that ends. The arguments are a
// system and the URL of a Redis.
func serveBench(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error {
	if len(args) != 2 || !slices.Contains(benchSystems, args[0]) {
		return fmt.Errorf("bench needs one of %v and the URL of a Redis", benchSystems)
	}
	client, err := openRedis(args[1])
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	serve, err := benchServer(args[0], args[1], client)
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		_ = l.Close()
	}()
	fmt.Fprintln(stdout, l.Addr())
	if err := serve(l); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// benchServer serves until the listener is closed.
func benchServer(system, redisURL string, client *redis.Client) (serve func(net.Listener) error, err error) {
	handler := http.Handler(http.HandlerFunc(created))
	switch system {
	case "oncepay":
		ours, err := redisstore.Open(redisURL)
		if err != nil {
			return nil, err
		}
		handler = idempotency.New(redisstore.New(ours), idempotency.Always(idempotency.Policy{Required: true}), idempotency.WithSharedScope()).Handler(handler)
	case "setnx-autopipeline":
		pipeline, err := client.AutoPipeline()
		if err != nil {
			return nil, err
		}
		handler = setNX{pipeline, handler}
	case "fiber": // serves by itself, on fasthttp, and not behind net/http
		app := newFiber(client, nil, func(c fiber.Ctx) error {
			c.Set("Content-Type", "application/json")
			return c.Status(http.StatusCreated).Send(nextOrder())
		})
		return func(l net.Listener) error { return app.Listener(l, fiber.ListenConfig{DisableStartupMessage: true}) }, nil
	default:
		handler = systems[system](client, handler)
	}
	return (&http.Server{Handler: handler, ReadHeaderTimeout: readTimeout}).Serve, nil
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
