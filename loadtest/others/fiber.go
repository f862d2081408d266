package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"time"

	"github.com/bsm/redislock"
	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/adaptor"
	"github.com/gofiber/fiber/v3/middleware/idempotency"
	storage "github.com/gofiber/storage/redis/v3"
	"github.com/redis/go-redis/v9"
)

const (
	// lifetime is the longest that any route of the API asks for.
	lifetime = 48 * time.Hour
	// lockExpiry is longer than the slowest handler of a campaign, because nothing prolongs it.
	lockExpiry = 10 * time.Second
	// lockPatience is as long as a client waits, nearly, and lockPause is between two tries.
	lockPatience, lockPause = 4 * time.Second, 50 * time.Millisecond
)

// errNotKept tells the middleware, by Fiber's convention, that the handler failed: what it has
// answered is not to be kept.
var errNotKept = errors.New("the answer asks for a retry")

// newFiber is Fiber's idempotency middleware with Redis as its storage, before a handler. Without a
// lock it takes its own, which is of this process.
func newFiber(client *redis.Client, lock idempotency.Locker, handler fiber.Handler) *fiber.App {
	app := fiber.New(fiber.Config{ErrorHandler: fiberError})
	anyKey := func(string) error { return nil } // the API refuses what it does not take
	app.Use(idempotency.New(idempotency.Config{KeyHeader: headerKey, KeyHeaderValidate: anyKey, Lifetime: lifetime,
		Storage: storage.NewFromConnection(client), Lock: lock}))
	app.Use(handler)
	return app
}

func fiberFront(client *redis.Client, lock idempotency.Locker, next http.Handler) http.Handler {
	handler := adaptor.HTTPHandler(ownRequest(next))
	return adaptor.FiberApp(newFiber(client, lock, func(c fiber.Ctx) error {
		err, answer := handler(c), c.Response()
		if err == nil && asksForRetry(answer.StatusCode(), http.Header{"Retry-After": {string(answer.Header.Peek("Retry-After"))}}) {
			return errNotKept
		}
		return err
	}))
}

// fiberError answers for the middleware when its storage or its lock fails.
func fiberError(c fiber.Ctx, err error) error {
	e := unavailable
	switch {
	case errors.Is(err, errNotKept):
		return nil // the handler has answered
	case errors.Is(err, redislock.ErrNotObtained):
		e = inProgress
	}
	c.Response().Reset()
	return adaptor.HTTPHandlerFunc(func(w http.ResponseWriter, _ *http.Request) { refuse(w, e) })(c)
}

// ownRequest copies what fasthttp writes over when a request is answered, because oncepay keeps
// some of it for longer.
func ownRequest(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := httputil.DumpRequest(r, true) // its body is in memory
		own, err := requestOf(raw)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		own.RemoteAddr = strings.Clone(r.RemoteAddr)
		next.ServeHTTP(w, own)
	})
}

// redisLock is a lock for all replicas, which Fiber leaves to its users to provide.
type redisLock struct {
	locks *redislock.Client
	held  sync.Map // *redislock.Lock by key; Unlock is told the key alone
}

// Lock implements [idempotency.Locker].
func (l *redisLock) Lock(key string) error {
	ctx, cancel := context.WithTimeout(context.Background(), lockPatience)
	defer cancel()
	lock, err := l.locks.Obtain(ctx, "fiber-lock:"+key, lockExpiry, &redislock.Options{RetryStrategy: redislock.LinearBackoff(lockPause)})
	if errors.Is(err, context.DeadlineExceeded) {
		return redislock.ErrNotObtained
	}
	if err != nil {
		return err
	}
	l.held.Store(key, lock)
	return nil
}

// Unlock implements [idempotency.Locker].
func (l *redisLock) Unlock(key string) error {
	lock, ok := l.held.LoadAndDelete(key)
	if !ok {
		return nil
	}
	return lock.(*redislock.Lock).Release(context.Background())
}
