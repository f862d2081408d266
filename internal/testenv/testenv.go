// Package testenv starts real servers for tests: a PostgreSQL database of their own, a Redis of
// their own, servers that they may stop, and a TCP proxy that counts round trips and loses replies.
// It is imported by tests only.
//
// A package that uses it has
//
//	func TestMain(m *testing.M) { testenv.Main(m) }
//
// Servers start when the first test asks and are gone when the tests end, however they end.
// The machine's own PostgreSQL and Redis serve where they are installed, which is quicker;
// otherwise containers do (testcontainers-go), if a Docker engine has the images or can pull them.
// A server that a test stops is always a process. There is no skipping: where neither is at hand
// the test fails and says what to install. These environment variables steer it:
//
//   - TESTENV: native or docker takes that one or fails
//   - POSTGRES_IMAGE, REDIS_IMAGE: other images than the official ones
package testenv

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/oncepay/oncepay/internal/localserver"
)

const (
	// decideTimeout bounds the look for a Docker engine and its images, a registry included. Only
	// tests that need an engine wait for it.
	decideTimeout = 30 * time.Second

	// startTimeout bounds one server's start. It is this long because a container's image may have
	// to be pulled first.
	startTimeout = 5 * time.Minute
)

// The environment of a test binary is global, because servers are shared by tests that know nothing
// of each other.
var (
	isManaged bool // Main runs and will clean up

	mu     sync.Mutex
	ends   []func() error      // of what was started for all tests; the last one is ended first
	served = map[string]bool{} // such as "Redis native"
)

// Main runs the tests of a package, stops the servers they started, says which kind served them,
// and exits. After tests that have passed, it fails if goroutines are left that are not ignored.
func Main(m *testing.M, ignored ...goleak.Option) {
	isManaged = true
	code := m.Run()
	note := func(what string, err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, what, err)
			code = max(code, 1)
		}
	}
	for _, end := range slices.Backward(ends) {
		note("testenv: stop the servers:", end())
	}
	if code == 0 {
		note("testenv: errors on successful test run:", goleak.Find(ignored...))
	}
	if len(served) > 0 {
		fmt.Println("testenv:", strings.Join(slices.Sorted(maps.Keys(served)), ", "))
	}
	os.Exit(code)
}

func atEnd(end func() error) {
	mu.Lock()
	defer mu.Unlock()
	ends = append(ends, end)
}

// kind is a kind of server, as a process or as a container.
type kind struct {
	localserver.Kind

	port    string   // of the container
	command []string // in the container; settings follow
	env     map[string]string
}

// backend starts servers in one way.
type backend struct {
	name  string
	start func(ctx context.Context, kind kind, cfg localserver.Config) (*Server, error)
}

// chosen is the backend of this test binary.
var chosen = sync.OnceValues(func() (backend, error) {
	ctx, cancel := context.WithTimeout(context.Background(), decideTimeout)
	defer cancel()
	return choose(ctx, os.Getenv("TESTENV"))
})

// choose returns the backend that was asked for, or the first that works here.
func choose(ctx context.Context, want string) (backend, error) {
	switch want {
	case "native":
		return native, checkPrograms()
	case "docker":
		return newDocker(ctx)
	case "":
		lack := checkPrograms()
		if lack == nil {
			return native, nil
		}
		b, err := newDocker(ctx)
		if err != nil {
			err = fmt.Errorf("the tests need programs (%w), or a Docker engine with images (%w)", lack, err)
		}
		return b, err
	}
	return backend{}, fmt.Errorf("TESTENV must be native, docker or empty, not %q", want)
}

func use(t testing.TB) backend {
	t.Helper()
	require.True(t, isManaged, "testenv: the package needs func TestMain(m *testing.M) { testenv.Main(m) }, which stops the servers")
	b, err := chosen()
	require.NoError(t, err, "testenv")
	return b
}

// Server is a database server of one test, which may stop and pause it. It is a process, so that
// this takes milliseconds. Its methods fail the test on an error and must be called from the test's
// own goroutine.
type Server struct {
	// URL is what a client connects with; it stays the same over Stop and Start.
	URL string
	// Addr is the server's host:port.
	Addr string

	t       testing.TB
	process *localserver.Server // nil: a container, which tests share
	remove  func() error        // stops it and leaves nothing behind
}

// launch starts a server, and remembers what served.
func (b backend) launch(kind kind, cfg localserver.Config) (*Server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	mu.Lock()
	served[kind.Program.Name+" "+b.name] = true
	mu.Unlock()
	return b.start(ctx, kind, cfg)
}

// shared returns a function that returns a server which the tests share, starting it at the first
// call.
func shared(kind kind, cfg localserver.Config) func(t testing.TB) *Server {
	start := sync.OnceValues(func() (*Server, error) {
		b, _ := chosen()
		server, err := b.launch(kind, cfg)
		if err == nil {
			atEnd(server.remove)
		}
		return server, err
	})
	return func(t testing.TB) *Server {
		t.Helper()
		use(t)
		server, err := start()
		require.NoError(t, err, "testenv")
		return server
	}
}

// newServer starts a process that ends with the test.
func newServer(t testing.TB, of localserver.Kind, cfg localserver.Config) *Server {
	t.Helper()
	server, err := native.launch(kind{Kind: of}, cfg)
	require.NoError(t, err, "testenv: servers of one test are processes, also with TESTENV=docker")
	t.Cleanup(func() { require.NoError(t, server.remove(), "testenv: remove a server") })
	server.t = t
	return server
}

// Stop ends the server: connections break, new ones are refused. PostgreSQL keeps its data, Redis
// loses everything.
func (s *Server) Stop() {
	s.t.Helper()
	require.NoErrorf(s.t, s.process.Halt(), "testenv: stop %s", s.Addr)
}

// Start starts the server again after Stop, at the same address, and waits until it answers.
func (s *Server) Start() { s.t.Helper(); do(s.t, "start "+s.Addr, s.process.Start) }

// Pause freezes the server: connections stay open and nothing is answered. For PostgreSQL only the
// main process is frozen, so that new connections hang while those at hand go on.
func (s *Server) Pause() { s.t.Helper(); s.signal(syscall.SIGSTOP) }

// Resume lets the server go on after Pause.
func (s *Server) Resume() { s.t.Helper(); s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	require.NoErrorf(s.t, s.process.Process.Signal(sig), "testenv: %s to %s", sig, s.Addr)
}

// do fails the test unless a step succeeds.
func do(t testing.TB, what string, step func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	require.NoError(t, step(ctx), "testenv: "+what)
}
