// Package localserver starts and stops private servers on this machine: PostgreSQL, Redis, and any
// other program. Each is a process in a session of its own, known by its pid and start time, on a
// loopback port that the kernel gives to no client's connection meanwhile. The local deployment
// (internal/stack) and the tests' servers (internal/testenv) are made of these.
package localserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/oncepay/oncepay/internal/programs"
	"github.com/oncepay/oncepay/internal/wait"
)

const (
	// ReadyTimeout bounds the wait for one server: a second or two normally, but a cold machine
	// with all of them starting at once needs more, and PostgreSQL may have to recover from a
	// crash.
	ReadyTimeout = 60 * time.Second

	// serverStopTimeout bounds a database server's orderly stop before it is killed.
	serverStopTimeout = 15 * time.Second

	// ProbeTimeout bounds one question to a server on this machine.
	ProbeTimeout = 2 * time.Second
)

// Config says how a server runs.
type Config struct {
	// Dir holds the server's files and its log; it is created, and a database that is there is
	// used again. Empty: a temporary directory that Stop removes. Out of reach for the user that
	// the server runs as when we are root: a temporary one, which the caller removes.
	Dir string
	// Port to listen on at 127.0.0.1; 0 takes a free one.
	Port int
	// Log is the file for the server's output; empty: one in Dir.
	Log string
	// Settings are further ones, as on the command line: "--maxmemory", "1mb". They win over ours.
	Settings []string
	// DieWithParent stops the server when this process dies, however it dies (Linux only).
	DieWithParent bool
}

// Kind is a kind of server: how it is prepared, found and stopped.
type Kind struct {
	Program *programs.Program
	// Image is of the same server in a container.
	Image Image
	// URL is what a client connects with, for a server at addr (host:port).
	URL func(addr string) string
	// Probe asks a server at addr whether it answers.
	Probe func(ctx context.Context, addr string) error

	name    string // of its directory and its log
	content string // is Command.Content
	// args makes what is missing in run.Dir, and returns the arguments.
	args func(ctx context.Context, cfg Config, run Command) ([]string, error)
	// stop ends it in order, death when its parent has died.
	stop, death syscall.Signal
}

// Command finds the program and makes its directory. The port must not be 0. As root it runs the
// server as the user postgres or nobody.
func (k Kind) Command(ctx context.Context, cfg Config) (run Command, err error) {
	if run, err = Prepare(k.Program, k.name, cfg.Dir); err != nil {
		return run, err
	}
	run.Log, run.Content = cmp.Or(cfg.Log, filepath.Join(run.Dir, k.name+".log")), k.content
	if cfg.DieWithParent {
		run.ParentDeath = k.death
	}
	run.Args, err = k.args(ctx, cfg, run)
	return run, err
}

// Prepare finds a program, and makes the directory of a server of this name.
func Prepare(program *programs.Program, name, dir string) (run Command, err error) {
	run.Env = []string{serverPath, "LC_ALL=C"}
	if run.Path, err = program.Find(); err != nil {
		return run, err
	}
	if run.User, err = unprivileged(); err != nil {
		return run, err
	}
	run.Dir, err = serverDir(dir, name, run.User)
	return run, err
}

// Start starts a private server and waits until it answers. On an error nothing is left running.
func (k Kind) Start(ctx context.Context, cfg Config) (s *Server, err error) {
	s = &Server{kind: k, isTemporary: cfg.Dir == ""}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("start %s: %w", k.name, err), s.Stop())
		}
	}()
	if s.port, err = HoldPort(cfg.Port); err != nil {
		return s, err
	}
	cfg.Port, s.Addr = s.port.Number, Loopback(s.port.Number)
	s.run, err = k.Command(ctx, cfg)
	s.URL, s.DataDir = k.URL(s.Addr), s.run.Dir
	if err == nil {
		err = s.Start(ctx)
	}
	return s, err
}

// Server is a database server that was started by [Kind.Start]. One goroutine at a time may call
// its methods.
type Server struct {
	// URL is what a client connects with: postgres://… or redis://….
	URL string
	// Addr is the host:port that the server listens on.
	Addr string
	// Process is the server's main process.
	Process Process
	// DataDir is where the server keeps its data: the configured directory, or a temporary one.
	DataDir string

	kind        Kind
	run         Command
	port        *Port // held until Stop
	isTemporary bool
}

// Start starts the server again after Halt, at the same address, and waits until it answers.
func (s *Server) Start(ctx context.Context) (err error) {
	if s.Process, err = s.run.Start(); err != nil {
		return err
	}
	err = AwaitReady(ctx, s.Process, func(ctx context.Context) error { return s.kind.Probe(ctx, s.Addr) })
	return WithLog(err, s.run.Log)
}

// Halt ends the server in an orderly way, and kills it when that takes longer than 15 s. Its port
// stays held.
func (s *Server) Halt() error {
	return s.Process.Stop(context.Background(), s.kind.stop, serverStopTimeout)
}

// Stop is Halt for good, and removes a temporary data directory. It may be called any number of
// times.
func (s *Server) Stop() error {
	err := s.Halt()
	s.port.Release()
	if s.isTemporary && err == nil {
		err = os.RemoveAll(s.DataDir)
	}
	return err
}

// AwaitReady probes a server that was started until it answers, for up to [ReadyTimeout]. It
// returns at once when the process has ended.
func AwaitReady(ctx context.Context, process Process, probe func(context.Context) error) error {
	return wait.For(ctx, ReadyTimeout, PollInterval, func(ctx context.Context) error {
		if !process.Alive() {
			return wait.Stop(errors.New("it has ended"))
		}
		return probe(ctx)
	})
}
