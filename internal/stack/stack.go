// Package stack runs oncepay locally: two replicas behind nginx with PostgreSQL, Redis and the
// provider simulator, as processes of this machine (native) or as containers (compose). It is also
// the switchboard that breaks them on purpose: kill, pause, stop, flush, partition. Both drivers
// listen on the same ports and take the same commands, so that a test doesn't need to know which
// one it is on.
package stack

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/oncepay/oncepay/internal/localserver"
)

// The drivers. Auto takes compose where a Docker engine answers and has or gets the images, native
// otherwise.
const (
	Auto    = "auto"
	Native  = "native"
	Compose = "compose"
)

// ErrNoStack says that the folder holds no stack.
var ErrNoStack = errors.New("no stack is up")

// modulePath is how we know the repository's root.
const modulePath = "github.com/oncepay/oncepay"

// Options are the settings of a stack; the zero value is the usual one.
type Options struct {
	// Dir is the stack's folder, relative to the repository's root; empty: .stack.
	Dir string
	// Driver is Auto (also when empty), Native or Compose. It counts for Up; later commands know
	// what Up chose.
	Driver string
	// Redis is Single (also when empty) or Sentinel: a primary and a replica with three sentinels,
	// on the native driver. It counts for Up; empty means what the stack that is up has.
	Redis string
	// Postgres is Single (also when empty), Standby or SyncStandby, on the native driver. It counts
	// for Up; empty means what the stack that is up has.
	Postgres string
	// Env are settings KEY=VALUE for both replicas, such as IDEMPOTENCY_LEASE=3s. They count for
	// Up.
	Env []string
	// PortOffset is added to every port, so that a second stack (with its own Dir) fits beside the
	// first. It counts for Up.
	PortOffset int
	// Direct connects the services to each other instead of through the fault proxy, which costs as
	// much CPU as the replicas at full load. Connections can't be partitioned, slowed or cut then.
	// Native only; it counts for Up.
	Direct bool
	// BuildTags compile our programs with build constraints, such as failpoints. They count for Up.
	BuildTags string
	// ReplicaProgram is an executable that the replicas run in place of oncepay, with the same
	// argument and environment: another system behind the same doors. Its path is absolute. Native
	// only; it counts for Up.
	ReplicaProgram string
	// NoInstall makes Up refuse instead of installing missing programs.
	NoInstall bool
	// Out gets the progress; nil: nothing.
	Out io.Writer
}

// Stack is one local deployment. Several commands on the same one wait for each other, across
// processes.
type Stack struct {
	Options
	ports
	root   string
	state  *state
	driver driver
}

// A driver runs the services in its way.
type driver interface {
	// up starts what doesn't run or runs with other settings, and returns when everything is ready.
	up(ctx context.Context) error
	// down ends and removes everything that up made outside the stack's folder; with keepData not
	// the data.
	down(ctx context.Context, keepData bool) error
	// start, stop and kill change one service; stop lets it end in order, kill doesn't. Doing what
	// is done already is no error.
	start(ctx context.Context, service string) error
	stop(ctx context.Context, service string) error
	kill(ctx context.Context, service string) error
	pause(ctx context.Context, service string) error
	resume(ctx context.Context, service string) error
	// conditions tells of every service whether it runs.
	conditions(ctx context.Context) (map[string]condition, error)
	// logs writes what services have printed, and goes on until ctx ends when follow is set.
	logs(ctx context.Context, services []string, follow bool) error
}

// condition is what a driver knows of a service's process or container.
type condition struct {
	state string // running, paused, stopped
	id    string // pid or container
}

const (
	running = "running"
	paused  = "paused"
	stopped = "stopped"
)

// New returns the stack of a folder, whether it is up or not. Must be called in the repository.
func New(opts Options) (*Stack, error) {
	if opts.Out == nil {
		opts.Out = io.Discard
	}
	if opts.Dir == "" {
		opts.Dir = ".stack"
	}
	if !slices.Contains([]string{"", Auto, Native, Compose}, opts.Driver) {
		return nil, fmt.Errorf("unknown driver %q: auto, native or compose", opts.Driver)
	}
	if !slices.Contains([]string{"", Single, Sentinel}, opts.Redis) {
		return nil, fmt.Errorf("unknown kind of Redis %q: single or sentinel", opts.Redis)
	}
	if !slices.Contains([]string{"", Single, Standby, SyncStandby}, opts.Postgres) {
		return nil, fmt.Errorf("unknown kind of PostgreSQL %q: single, standby or sync-standby", opts.Postgres)
	}
	if opts.PortOffset < 0 || opts.PortOffset > maxOffset {
		return nil, fmt.Errorf("the port offset must be between 0 and %d", maxOffset)
	}
	for _, pair := range opts.Env {
		if name, _, ok := strings.Cut(pair, "="); !ok || name == "" {
			return nil, fmt.Errorf("%q is not KEY=VALUE", pair)
		}
	}
	s := &Stack{Options: opts, ports: ports{offset: opts.PortOffset}}
	var err error
	if s.root, err = findRoot(); err != nil {
		return nil, err
	}
	if !filepath.IsAbs(s.Dir) {
		s.Dir = filepath.Join(s.root, s.Dir)
	}
	if err := s.load(); err != nil {
		return nil, err
	}
	return s, nil
}

// load reads the state, and with it what an earlier `up` decided.
func (s *Stack) load() (err error) {
	if s.state, err = loadState(s.Dir); err != nil {
		return err
	}
	if d := s.state.data; d.Driver != "" {
		s.ports = ports{offset: d.PortOffset, direct: d.Direct}
		s.driver = s.newDriver(d.Driver)
	}
	return nil
}

func (s *Stack) newDriver(name string) driver {
	if name == Compose {
		return &compose{s}
	}
	return &native{Stack: s}
}

// Up brings the whole stack up, or what is missing of it, and returns when it answers through
// nginx.
func (s *Stack) Up(ctx context.Context) error { return s.locked(ctx, s.up) }

// Down removes the stack and, unless keepData is set, its data. A stack that isn't there is no
// error.
func (s *Stack) Down(ctx context.Context, keepData bool) error {
	if !s.claimed() {
		s.printf("no stack in %s\n", s.Dir)
		return nil
	}
	return s.locked(ctx, func(ctx context.Context) error { return s.down(ctx, keepData) })
}

// Logs writes what the services have printed; no services means all.
func (s *Stack) Logs(ctx context.Context, services []string, follow bool) error {
	if s.driver == nil {
		return fmt.Errorf("%w in %s", ErrNoStack, s.Dir)
	}
	if len(services) == 0 {
		services = s.services()
	}
	return s.driver.logs(ctx, services, follow)
}

// claimed reports whether the folder is a stack's.
func (s *Stack) claimed() bool { return isFile(filepath.Join(s.Dir, lockName)) }

// onStack does something to a stack that is up.
func (s *Stack) onStack(ctx context.Context, do func(context.Context) error) error {
	if !s.claimed() {
		return fmt.Errorf("%w in %s", ErrNoStack, s.Dir)
	}
	return s.locked(ctx, func(ctx context.Context) error {
		if s.driver == nil {
			return fmt.Errorf("%w in %s", ErrNoStack, s.Dir)
		}
		return do(ctx)
	})
}

// locked does something while no other command does.
func (s *Stack) locked(ctx context.Context, do func(context.Context) error) error {
	unlock, err := lockDir(ctx, s.Dir, func(pid int) {
		s.printf("waiting for another stack command (pid %d) …\n", pid)
	})
	if err != nil {
		return err
	}
	defer unlock()
	if err := s.load(); err != nil {
		return err
	}
	return do(ctx)
}

// Oncepay runs a command of oncepay's as an operator would, such as "outbox", "replay", "--since",
// "1m", and returns what it printed. Only the native driver can.
func (s *Stack) Oncepay(ctx context.Context, args ...string) (string, error) {
	n, ok := s.driver.(*native)
	if !ok {
		return "", errors.New("only the native driver can do that")
	}
	return n.runOncepay(ctx, args...)
}

// URL is the public address, nginx's.
func (s *Stack) URL() string { return "http://" + s.addr(Nginx) }

// PostgresURL is the connection URL of a stack's database at addr (host:port).
func PostgresURL(addr string) string { return localserver.PostgresURL(addr) }

// FindNginx returns the path of the nginx that a native stack runs.
func FindNginx() (string, error) { return localserver.FindNginx() }

// Addr is where a service listens: host:port on loopback.
func (s *Stack) Addr(service string) string { return s.addr(service) }

// findRoot walks up from the working directory to our go.mod.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	for {
		if moduleOf(dir) == modulePath {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("run this inside the oncepay repository")
		}
		dir = parent
	}
}

func moduleOf(dir string) string {
	file, err := os.Open(filepath.Join(dir, "go.mod"))
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if name, ok := strings.CutPrefix(lines.Text(), "module "); ok {
			return strings.TrimSpace(name)
		}
	}
	return ""
}

// interrupted reports whether the user pressed Ctrl-C, or the like.
func interrupted(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, syscall.EINTR)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
