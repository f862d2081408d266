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
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/oncepay/oncepay/internal/localserver"
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

// Option is a further check of Main's, after tests that have passed.
type Option func() error

// NoLeaks makes Main fail when goroutines are left after the tests have passed and the servers have
// stopped.
func NoLeaks(rules ...goleak.Option) Option {
	return func() error { return goleak.Find(rules...) }
}

// Main runs the tests of a package, stops the servers they started, says which kind served them,
// and exits.
func Main(m *testing.M, opts ...Option) {
	env.isManaged = true
	code := m.Run()
	note := func(what string, err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, what, err)
			code = max(code, 1)
		}
	}
	for _, end := range slices.Backward(env.ends) {
		note("testenv: stop the servers:", end())
	}
	for _, check := range opts {
		if code == 0 {
			note("testenv: errors on successful test run:", check())
		}
	}
	if env.served != nil {
		fmt.Println("testenv:", strings.Join(env.served, ", "))
	}
	os.Exit(code)
}

// env is the one environment of a test binary. It is global because servers are shared by tests
// that know nothing of each other.
var env environment

// environment starts what the tests ask for, once.
type environment struct {
	isManaged bool // Main runs and will clean up

	chooseOnce sync.Once
	backend    backend
	chooseErr  error

	mu     sync.Mutex
	ends   []func() error // of what was started for all tests; the last one is ended first
	served []string       // such as "Redis 7.0.15 native", in order of first use
}

// backend starts servers in one way.
type backend interface {
	name() string
	start(ctx context.Context, kind kind, cfg localserver.Config) (*instance, error)
}

// kind is a kind of server, as a process or as a container.
type kind struct {
	localserver.Kind
	version func(ctx context.Context, addr string) string

	port    string   // of the container
	command []string // in the container; settings follow
	env     map[string]string
}

// instance is one running server.
type instance struct {
	addr, url     string
	stop, pause   func(context.Context) error
	start, resume func(context.Context) error // start: at the same address
	remove        func() error                // stops it and leaves nothing behind
}

// use returns the backend, deciding at the first call.
func (e *environment) use(t testing.TB) backend {
	t.Helper()
	require.True(t, e.isManaged, "testenv: the package needs func TestMain(m *testing.M) { testenv.Main(m) }, which stops the servers")
	e.chooseOnce.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), decideTimeout)
		defer cancel()
		e.backend, e.chooseErr = choose(ctx, os.Getenv("TESTENV"))
	})
	require.NoError(t, e.chooseErr, "testenv")
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

// start starts a server, and remembers what served.
func (e *environment) start(b backend, kind kind, cfg localserver.Config) (*instance, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	i, err := b.start(ctx, kind, cfg)
	if err != nil {
		return nil, err
	}
	served := kind.Program.Name + " " + kind.version(ctx, i.addr) + " " + b.name()
	e.mu.Lock()
	defer e.mu.Unlock()
	if !slices.Contains(e.served, served) {
		e.served = append(e.served, served)
	}
	return i, nil
}

// shared returns a function that returns a server which the tests share, starting it at the first
// call.
func shared(kind kind, cfg localserver.Config) func(t testing.TB) *instance {
	start := sync.OnceValues(func() (*instance, error) {
		i, err := env.start(env.backend, kind, cfg)
		if err == nil {
			env.atEnd(i.remove)
		}
		return i, err
	})
	return func(t testing.TB) *instance {
		t.Helper()
		env.use(t)
		i, err := start()
		require.NoError(t, err, "testenv")
		return i
	}
}

func (e *environment) atEnd(end func() error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ends = append(e.ends, end)
}

// Server is a database server of one test, which may stop and pause it. Its methods fail the test
// on an error and must be called from the test's own goroutine.
type Server struct {
	// URL is what a client connects with; it stays the same over Stop and Start.
	URL string
	// Addr is the server's host:port.
	Addr string

	t        testing.TB
	instance *instance
}

// newServer starts a server that ends with the test.
func newServer(t testing.TB, b backend, kind kind, cfg localserver.Config) *Server {
	t.Helper()
	i, err := env.start(b, kind, cfg)
	require.NoError(t, err, "testenv")
	t.Cleanup(func() { require.NoError(t, i.remove(), "testenv: remove a server") })
	return &Server{URL: i.url, Addr: i.addr, t: t, instance: i}
}

// Stop ends the server: connections break, new ones are refused. PostgreSQL keeps its data, Redis
// loses everything.
func (s *Server) Stop() { s.t.Helper(); do(s.t, "stop "+s.Addr, s.instance.stop) }

// Start starts the server again after Stop, at the same address, and waits until it answers.
func (s *Server) Start() { s.t.Helper(); do(s.t, "start "+s.Addr, s.instance.start) }

// Pause freezes the server: connections stay open and nothing is answered. For PostgreSQL only the
// main process is frozen, so that new connections hang while those at hand go on.
func (s *Server) Pause() { s.t.Helper(); do(s.t, "pause "+s.Addr, s.instance.pause) }

// Resume lets the server go on after Pause.
func (s *Server) Resume() { s.t.Helper(); do(s.t, "resume "+s.Addr, s.instance.resume) }

// do fails the test unless a step succeeds.
func do(t testing.TB, what string, step func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	require.NoError(t, step(ctx), "testenv: "+what)
}
