// Package testenv starts real servers for tests: a PostgreSQL database of their own, a Redis of
// their own, servers that they may stop, and a TCP proxy that counts round trips and loses replies.
// It is imported by tests only.
//
// A package that uses it has
//
//	func TestMain(m *testing.M) { testenv.Main(m) }
//
// Servers start when the first test asks and are gone when the tests end, however they end.
// Containers (testcontainers-go) serve where a Docker engine answers and has the images or can pull
// them; otherwise the machine's own PostgreSQL and Redis do. There is no skipping: where neither is
// at hand the test fails and says what to install. These environment variables steer it:
//
//   - TESTENV: native or docker takes that one or fails
//   - POSTGRES_IMAGE, REDIS_IMAGE: other images than the official ones
package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

const (
	// decideTimeout bounds the look for a Docker engine and its images, a registry included: an
	// engine answers in milliseconds, a registry in under a second, and one that does not answer
	// must not hold up tests that can run without it.
	decideTimeout = 3 * time.Second

	// startTimeout bounds one server's start. It is this long because a container's image may have
	// to be pulled first.
	startTimeout = 5 * time.Minute

	// readyTimeout bounds the wait for a server whose process runs: seconds even on a loaded
	// machine, unless something is wrong.
	readyTimeout = time.Minute
)

// Option changes what Main does.
type Option func(*options)

type options struct {
	leaks     bool
	leakRules []goleak.Option
}

// NoLeaks makes Main fail when goroutines are left after the tests have passed and the servers have
// stopped.
func NoLeaks(rules ...goleak.Option) Option {
	return func(o *options) { o.leaks, o.leakRules = true, rules }
}

// Main runs the tests of a package, stops the servers they started, says which kind served them,
// and exits.
func Main(m *testing.M, opts ...Option) {
	var o options
	for _, set := range opts {
		set(&o)
	}
	os.Exit(run(m, o))
}

func run(m *testing.M, o options) int {
	env.managed = true
	code := m.Run()
	if err := env.close(); err != nil {
		fmt.Fprintln(os.Stderr, "testenv: stop the servers:", err)
		code = max(code, 1)
	}
	if served := env.served(); served != "" {
		fmt.Println("testenv:", served)
	}
	if code == 0 && o.leaks {
		if err := goleak.Find(o.leakRules...); err != nil {
			fmt.Fprintln(os.Stderr, "goleak: errors on successful test run:", err)
			return 1
		}
	}
	return code
}

// env is the one environment of a test binary. It is global because servers are shared by tests
// that know nothing of each other.
var env environment

// environment starts what the tests ask for, once.
type environment struct {
	managed bool // Main runs and will clean up

	chooseOnce sync.Once
	backend    backend
	chooseErr  error

	postgres, redis shared

	mu       sync.Mutex
	versions []string // what served, in order of first use
}

// shared is a server that several tests use side by side.
type shared struct {
	once     sync.Once
	instance instance
	err      error
}

// backend starts servers of one kind.
type backend interface {
	name() string
	startPostgres(ctx context.Context) (instance, error)
	startRedis(ctx context.Context, settings ...string) (instance, error)
	close() error
}

// instance is one running server.
type instance interface {
	addr() string
	url() string
	stop(ctx context.Context) error
	start(ctx context.Context) error // after stop; at the same address
	pause(ctx context.Context) error
	resume(ctx context.Context) error
	remove() error // stops it and leaves nothing behind
}

// use returns the backend, deciding at the first call.
func (e *environment) use(t testing.TB) backend {
	t.Helper()
	if !e.managed {
		t.Fatal("testenv: the package needs func TestMain(m *testing.M) { testenv.Main(m) }, which stops the servers")
	}
	e.chooseOnce.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), decideTimeout)
		defer cancel()
		e.backend, e.chooseErr = choose(ctx, os.Getenv("TESTENV"))
	})
	if e.chooseErr != nil {
		t.Fatalf("testenv: %v", e.chooseErr)
	}
	return e.backend
}

// choose returns the backend that was asked for, or the first that works here.
func choose(ctx context.Context, want string) (backend, error) {
	switch want {
	case "native":
		return newNative()
	case "docker":
		return newDocker(ctx)
	case "":
		docker, dockerErr := newDocker(ctx)
		if dockerErr == nil {
			return docker, nil
		}
		native, nativeErr := newNative()
		if nativeErr == nil {
			return native, nil
		}
		return nil, fmt.Errorf("the tests need PostgreSQL 15 and Redis 7.0 or later: install the packages postgresql and redis-server, "+
			"or run a Docker engine with the images postgres and redis (%w; %w)", nativeErr, dockerErr)
	default:
		return nil, fmt.Errorf("TESTENV must be native, docker or empty, not %q", want)
	}
}

// outageBackend is the backend for servers that a test stops: processes where they are installed,
// as they stop and start in milliseconds, otherwise whatever serves the other tests.
func (e *environment) outageBackend(t testing.TB) backend {
	t.Helper()
	b := e.use(t)
	if os.Getenv("TESTENV") == "" {
		if native, err := newNative(); err == nil {
			return native
		}
	}
	return b
}

func (e *environment) get(t testing.TB, s *shared, start func(context.Context) (instance, error)) instance {
	t.Helper()
	s.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		s.instance, s.err = start(ctx)
	})
	if s.err != nil {
		t.Fatalf("testenv: %v", s.err)
	}
	return s.instance
}

// report remembers what served, such as "Redis 7.0.15 native".
func (e *environment) report(line string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, known := range e.versions {
		if known == line {
			return
		}
	}
	e.versions = append(e.versions, line)
}

func (e *environment) served() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Join(e.versions, ", ")
}

func (e *environment) close() error {
	var errs []error
	for _, s := range []*shared{&e.postgres, &e.redis} {
		if s.instance != nil {
			errs = append(errs, s.instance.remove())
		}
	}
	if e.backend != nil {
		errs = append(errs, e.backend.close())
	}
	return errors.Join(errs...)
}
