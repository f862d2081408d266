// Package stack runs oncepay locally: two replicas behind nginx with PostgreSQL, Redis and the
// provider simulator, as processes of this machine (native) or as containers (compose). It also
// breaks them on purpose, through its switchboard. Both drivers listen on the same ports and take
// the same commands, so that a test doesn't need to know which one it is on.
package stack

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

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

// Options are the settings of a stack; the zero value is the usual one. All but Dir and Out count
// for Up: later commands know what it chose.
type Options struct {
	Dir        string    // the stack's folder, relative to the repository's root; empty: .stack
	Driver     string    // Auto (also when empty), Native or Compose
	Redis      string    // Single or Sentinel; empty: as the stack that is up, or Single
	Postgres   string    // Single, Standby or SyncStandby; empty: in the same way
	Pooler     string    // PgBouncer, or empty
	Env        []string  // settings KEY=VALUE for both replicas, such as IDEMPOTENCY_LEASE=3s
	PortOffset int       // is added to every port, for a second stack with its own Dir
	BuildTags  string    // compile our programs with build constraints, such as failpoints
	NoInstall  bool      // Up refuses instead of installing missing programs
	Out        io.Writer // gets the progress; nil: nothing

	// The rest, the pooler, and more than a single server of Redis or PostgreSQL, is native only.

	// Direct connects the services without the fault proxy, which costs as much CPU as the replicas
	// at full load. Connections can't be partitioned, slowed or cut then.
	Direct bool
	// Console serves the console, and has the replicas send it their traces, until Down.
	Console bool
	// Programs are absolute paths of what runs in place of the oncepay that is built, with the same
	// arguments and environment, by replica, or Oncepay for its commands.
	Programs map[string]string
}

// check refuses what no stack can be, and what a stack that is up can only have from its start.
func (o *Options) check(up *state) error {
	for _, option := range []struct {
		flag       string
		wanted, is any
		known      []any
	}{
		{"driver", o.Driver, up.Driver, []any{Native, Compose}},
		{"redis", o.Redis, cmp.Or(up.Redis, Single), []any{Single, Sentinel}},
		{"postgres", o.Postgres, cmp.Or(up.Postgres, Single), []any{Single, Standby, SyncStandby}},
		{"pooler", o.Pooler, up.Pooler, []any{PgBouncer}},
		{"port-offset", o.PortOffset, up.Offset, nil},
		{"direct", o.Direct, up.Direct, nil},
	} {
		switch isSet := !slices.Contains([]any{"", Auto, 0, false}, option.wanted); {
		case isSet && option.known != nil && !slices.Contains(option.known, option.wanted):
			return fmt.Errorf("unknown %s %q: it is one of %v", option.flag, option.wanted, option.known)
		case isSet && up.Driver != "" && option.wanted != option.is:
			return fmt.Errorf("the stack that is up has --%s=%v: take it down first", option.flag, option.is)
		}
	}
	if o.PortOffset < 0 || o.PortOffset > maxOffset {
		return fmt.Errorf("the port offset must be between 0 and %d", maxOffset)
	}
	for _, pair := range o.Env {
		if name, _, ok := strings.Cut(pair, "="); !ok || name == "" {
			return fmt.Errorf("%q is not KEY=VALUE", pair)
		}
	}
	return nil
}

// stopGrace is how long a service may take to end in order before it is killed. A replica that is
// busy with a slow payment could take a minute; nothing is lost without it.
const stopGrace = 10 * time.Second

const nameWidth = 16 // the longest is postgres-standby

// Stack is one local deployment. Several commands on the same one wait for each other, across
// processes.
type Stack struct {
	// Dir is its folder, as an absolute path.
	Dir string
	// Topology is part of the state.
	*Topology

	root    string // of the repository
	options Options
	driver  driver // nil as long as `up` has not chosen one
	mu      sync.Mutex
	state   *state
	held    []*localserver.Port // while services are started
}

// A driver runs the services in its way.
type driver interface {
	// up starts what doesn't run or runs with other settings, and returns when everything is ready.
	up(ctx context.Context) error
	// down ends and removes everything that up made outside the stack's folder.
	down(ctx context.Context) error
	// logs is a command that prints what services have printed.
	logs(ctx context.Context, services []string, follow bool) *exec.Cmd
	// control does a verb of the switchboard to a service: start and stop, kill, pause and resume.
	// Doing what is done already is no error. It returns errNativeOnly for what it cannot do.
	control(ctx context.Context, verb, service string) error
	// conditions tells of every service whether it runs: its State and ID. One that is not in there
	// is stopped.
	conditions(ctx context.Context) (map[string]ServiceStatus, error)
}

// The states that a driver knows.
const (
	running = "running"
	paused  = "paused"
	stopped = "stopped"
)

// New returns the stack of a folder, whether it is up or not. Must be called in the repository.
func New(opts Options) (*Stack, error) {
	root, err := findRoot()
	if err != nil {
		return nil, err
	}
	opts.Out = cmp.Or(opts.Out, io.Discard)
	s := &Stack{Dir: cmp.Or(opts.Dir, ".stack"), root: root, options: opts}
	if !filepath.IsAbs(s.Dir) {
		s.Dir = filepath.Join(root, s.Dir)
	}
	return s, s.load()
}

// Interrupts are the signals that end a program in order: it takes its stack down, or leaves one
// that Down can remove. A closed terminal sends SIGHUP, which is left out if nohup(1) ignores it.
func Interrupts() []os.Signal {
	if signal.Ignored(syscall.SIGHUP) {
		return []os.Signal{os.Interrupt, syscall.SIGTERM}
	}
	return []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}
}

// findRoot walks up from the working directory to our go.mod.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	for ; err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		module, _ := os.ReadFile(filepath.Join(dir, "go.mod"))
		if bytes.HasPrefix(module, []byte("module github.com/oncepay/oncepay\n")) {
			return dir, nil
		}
	}
	return "", errors.Join(err, errors.New("run this inside the oncepay repository"))
}

func (s *Stack) newDriver() driver {
	if s.state.Driver == Compose {
		return &composeDriver{s}
	}
	return &nativeDriver{s}
}

func (s *Stack) noStack() error { return fmt.Errorf("%w in %s", ErrNoStack, s.Dir) }

// Down removes the stack and its data. A stack that isn't there is no error.
func (s *Stack) Down(ctx context.Context) error {
	err := s.whileUp(ctx, func() error {
		return s.step("down", "", func() (string, error) {
			if err := s.driver.down(ctx); err != nil {
				return "", err
			}
			return "all removed", s.remove()
		})
	})
	if errors.Is(err, ErrNoStack) {
		s.printf("%v\n", err)
		return nil
	}
	return err
}

// Use has a replica, or Oncepay, run another program from its next start on, or the one that was
// built if the path is empty.
func (s *Stack) Use(ctx context.Context, name, program string) error {
	return s.whileUp(ctx, func() error {
		return s.update(func(d *state) { d.Programs[name] = program })
	})
}

// output runs a command to its end; the error has what it printed.
func output(cmd *exec.Cmd) (string, error) {
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return string(out), err
}

// step does something, and prints a line when it is done: name, address, state, seconds. The error
// itself comes later.
func (s *Stack) step(name, where string, do func() (state string, err error)) error {
	begun := time.Now()
	state, err := do()
	if err != nil {
		state, err = "FAILED", fmt.Errorf("%s: %w", name, err)
	}
	s.printf("  %-*s %-17s %-28s %5.1f s\n", nameWidth, name, where, state, time.Since(begun).Seconds())
	return err
}

// printf shows something to the user; if the output is closed, the work goes on. One call is one
// write: the lines of parallel steps don't mix.
func (s *Stack) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(s.options.Out, format, args...)
}
