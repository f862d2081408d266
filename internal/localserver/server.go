package localserver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

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

// Server is a database server that was started by StartPostgres or StartRedis. Its methods may be
// called from several goroutines.
type Server struct {
	// URL is what a client connects with: postgres://… or redis://….
	URL string
	// Addr is the host:port that the server listens on.
	Addr string
	// Process is the server's main process.
	Process Process
	// DataDir is where the server keeps its data: the configured directory, or a temporary one.
	DataDir string

	stopSignal syscall.Signal
	temporary  bool  // DataDir is ours to remove
	port       *Port // held until Stop
	stopOnce   sync.Once
	stopErr    error
}

// Stop ends the server in an orderly way, kills it when that takes longer than 15 s, and removes a
// temporary data directory. It may be called any number of times.
func (s *Server) Stop() error {
	s.stopOnce.Do(func() {
		s.stopErr = s.Process.Stop(context.Background(), s.stopSignal, serverStopTimeout)
		s.port.Release()
		if s.temporary && s.stopErr == nil {
			s.stopErr = os.RemoveAll(s.DataDir)
		}
	})
	return s.stopErr
}

// serverKind is how one kind of server is started, found and stopped.
type serverKind struct {
	url   func(addr string) string
	stop  syscall.Signal
	probe func(ctx context.Context, addr string) error
}

// startServer runs a prepared server on a port that it holds, and waits until the server answers.
func startServer(ctx context.Context, run Command, port *Port, kind serverKind) (*Server, error) {
	process, exited, err := run.Start()
	if err != nil {
		port.Release()
		return nil, err
	}
	addr := Loopback(port.Number)
	server := &Server{Addr: addr, URL: kind.url(addr), Process: process, DataDir: run.Dir, stopSignal: kind.stop, port: port}
	err = AwaitReady(ctx, exited, func(ctx context.Context) error { return kind.probe(ctx, addr) })
	if err != nil {
		return nil, errors.Join(WithLog(err, run.Log), server.Stop())
	}
	return server, nil
}

// errEnded says that a server's process has ended instead of getting ready.
var errEnded = errors.New("it has ended")

// AwaitReady probes a server that was started until it answers, for up to [ReadyTimeout]. It
// returns at once when the process ends, which closes exited.
func AwaitReady(ctx context.Context, exited <-chan struct{}, probe func(context.Context) error) error {
	return wait.For(ctx, ReadyTimeout, PollInterval, func(ctx context.Context) error {
		select {
		case <-exited:
			return wait.Stop(errEnded)
		default:
			return probe(ctx)
		}
	})
}

// logFile is the configured log, or one in the server's directory.
func logFile(configured, dir, name string) string {
	if configured != "" {
		return configured
	}
	return filepath.Join(dir, name+".log")
}

func signalIf(on bool, sig syscall.Signal) syscall.Signal {
	if on {
		return sig
	}
	return 0
}
