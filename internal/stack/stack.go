// Package stack runs oncepay locally: two replicas behind nginx with PostgreSQL, Redis and the
// provider simulator, as processes of this machine (native) or as containers (compose). It also
// breaks them on purpose, through its switchboard. Both drivers listen on the same ports and take
// the same commands, so that a test doesn't need to know which one it is on.
//
// This package has the commands. What they are made of is in its folders, see "Who may import whom"
// in docs/design.md.
package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/oncepay/oncepay/internal/stack/compose"
	"github.com/oncepay/oncepay/internal/stack/deployment"
	"github.com/oncepay/oncepay/internal/stack/native"
	"github.com/oncepay/oncepay/internal/stack/sentinel"
	"github.com/oncepay/oncepay/internal/stack/switchboard"
	"github.com/oncepay/oncepay/internal/stack/topology"
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
	// Console serves the page on which one sees the stack work, and has the replicas send it their
	// traces. Native only; it counts for Up, and stays until Down.
	Console bool
	// BuildTags compile our programs with build constraints, such as failpoints. They count for Up.
	BuildTags string
	// Programs are executables, as absolute paths, that run in place of the oncepay that is built,
	// with the same arguments and environment: another system or version behind the same
	// endpoints. Their names are those of the replicas, and Oncepay for its commands. Native only;
	// they count for Up.
	Programs map[string]string
	// NoInstall makes Up refuse instead of installing missing programs.
	NoInstall bool
	// Out gets the progress; nil: nothing.
	Out io.Writer
}

// check refuses what no stack can be.
func (o *Options) check() error {
	if !slices.Contains([]string{"", Auto, Native, Compose}, o.Driver) {
		return fmt.Errorf("unknown driver %q: auto, native or compose", o.Driver)
	}
	if !slices.Contains([]string{"", Single, Sentinel}, o.Redis) {
		return fmt.Errorf("unknown kind of Redis %q: single or sentinel", o.Redis)
	}
	if !slices.Contains([]string{"", Single, Standby, SyncStandby}, o.Postgres) {
		return fmt.Errorf("unknown kind of PostgreSQL %q: single, standby or sync-standby", o.Postgres)
	}
	if o.PortOffset < 0 || o.PortOffset > topology.MaxOffset {
		return fmt.Errorf("the port offset must be between 0 and %d", topology.MaxOffset)
	}
	for _, pair := range o.Env {
		if name, _, ok := strings.Cut(pair, "="); !ok || name == "" {
			return fmt.Errorf("%q is not KEY=VALUE", pair)
		}
	}
	return nil
}

// Stack is one local deployment. Several commands on the same one wait for each other, across
// processes.
type Stack struct {
	*deployment.Deployment
	options Options
	driver  driver // nil as long as `up` has not chosen one
}

// A driver runs the services in its way.
type driver interface {
	switchboard.Driver
	// Up starts what doesn't run or runs with other settings, and returns when everything is ready.
	Up(ctx context.Context) error
	// Down ends and removes everything that Up made outside the stack's folder; with keepData not
	// the data.
	Down(ctx context.Context, keepData bool) error
	// Logs writes to out what services have printed, and goes on until ctx ends when follow is set.
	Logs(ctx context.Context, out io.Writer, services []string, follow bool) error
}

// New returns the stack of a folder, whether it is up or not. Must be called in the repository.
func New(opts Options) (*Stack, error) {
	if opts.Out == nil {
		opts.Out = io.Discard
	}
	if opts.Dir == "" {
		opts.Dir = ".stack"
	}
	if err := opts.check(); err != nil {
		return nil, err
	}
	d, err := deployment.New(opts.Dir, opts.Out)
	if err != nil {
		return nil, err
	}
	d.BuildTags = opts.BuildTags
	s := &Stack{Deployment: d, options: opts}
	s.adopt()
	return s, nil
}

// adopt takes over what an earlier `up` decided.
func (s *Stack) adopt() {
	if name := s.State.Data.Driver; name != "" {
		s.driver = s.newDriver(name)
		return
	}
	s.Offset = s.options.PortOffset
}

func (s *Stack) newDriver(name string) driver {
	if name == Compose {
		return &compose.Driver{Deployment: s.Deployment}
	}
	return &native.Driver{Deployment: s.Deployment, NoInstall: s.options.NoInstall}
}

// Do applies a command of the switchboard, such as Do(ctx, "partition", "api-1", "redis"), and
// returns when it has taken effect.
func (s *Stack) Do(ctx context.Context, verb string, args ...string) error {
	command, err := switchboard.Parse(verb, args...)
	if err != nil {
		return err
	}
	if !s.Claimed() {
		return s.noStack()
	}
	return s.locked(ctx, func(ctx context.Context) error {
		if s.driver == nil {
			return s.noStack()
		}
		begun := time.Now()
		if err := (switchboard.Board{Deployment: s.Deployment, Driver: s.driver}).Do(ctx, command); err != nil {
			return err
		}
		s.Printf("%s: done in %.1f s\n", command, time.Since(begun).Seconds())
		return nil
	})
}

// locked does something while no other command does.
func (s *Stack) locked(ctx context.Context, do func(context.Context) error) error {
	return s.Locked(ctx, func(ctx context.Context) error {
		s.adopt()
		return do(ctx)
	})
}

func (s *Stack) noStack() error { return fmt.Errorf("%w in %s", ErrNoStack, s.Dir) }

// Logs writes to out what the services have printed; no services means all.
func (s *Stack) Logs(ctx context.Context, out io.Writer, services []string, follow bool) error {
	if s.driver == nil {
		return s.noStack()
	}
	if len(services) == 0 {
		services = s.Services()
	}
	for _, name := range services {
		if !slices.Contains(s.Services(), name) {
			return fmt.Errorf("this stack has no service %q; it has %s", name, strings.Join(s.Services(), ", "))
		}
	}
	return s.driver.Logs(ctx, out, services, follow)
}

// RedisMaster is the address (host:port) of the Redis that takes writes: the only one, or the one
// that Sentinel has appointed.
func (s *Stack) RedisMaster(ctx context.Context) (addr string, err error) {
	return sentinel.Master(ctx, s.Topology)
}

// onNative asks the native driver, if that is the driver.
func onNative[T any](s *Stack, ask func(*native.Driver) (T, error)) (answer T, err error) {
	driver, ok := s.driver.(*native.Driver)
	if !ok {
		return answer, switchboard.ErrNativeOnly
	}
	return ask(driver)
}

// Oncepay runs a command of oncepay's as an operator would, such as "outbox", "replay", "--since",
// "1m", and returns what it printed. Only the native driver can.
func (s *Stack) Oncepay(ctx context.Context, args ...string) (string, error) {
	return onNative(s, func(d *native.Driver) (string, error) { return d.Oncepay(ctx, args...) })
}

// PassedOn counts the POSTs that nginx has passed on to a second replica since the stack came up.
// Only the native driver knows.
func (s *Stack) PassedOn() (int, error) { return onNative(s, (*native.Driver).PassedOn) }

// Started is when nginx read the header of each request that has ended, by request ID. Only the
// native driver knows.
func (s *Stack) Started() (map[string]time.Time, error) { return onNative(s, (*native.Driver).Started) }

// Use has a replica, or Oncepay, run another program from its next start on, or the one that was
// built if the path is empty.
func (s *Stack) Use(ctx context.Context, name, program string) error {
	return s.locked(ctx, func(context.Context) error {
		if s.driver == nil {
			return s.noStack()
		}
		return s.State.Update(func(d *deployment.StateData) { d.Programs[name] = program })
	})
}
