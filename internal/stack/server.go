package stack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// serverStopTimeout bounds a database server's orderly stop before it is killed.
	serverStopTimeout = 15 * time.Second

	// portAttempts is how often another free port is tried when somebody takes the chosen one before the server does.
	portAttempts = 3
)

// serverPath is the PATH of servers: not ours, which `go run` changes, so that it would look like a change of settings.
const serverPath = "PATH=/usr/local/bin:/usr/bin:/bin"

// ErrNotInstalled says that a program is absent or too old; the text names what is needed and what was found.
var ErrNotInstalled = errors.New("not installed")

// Server is a database server that was started by StartPostgres or StartRedis. Its methods may be called from several goroutines.
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
	temporary  bool // DataDir is ours to remove
	stopOnce   sync.Once
	stopErr    error
}

// Stop ends the server in an orderly way, kills it when that takes longer than 15 s, and removes a temporary data directory.
// It may be called any number of times.
func (s *Server) Stop() error {
	s.stopOnce.Do(func() {
		s.stopErr = s.Process.Stop(context.Background(), s.stopSignal, serverStopTimeout)
		if s.temporary && s.stopErr == nil {
			s.stopErr = os.RemoveAll(s.DataDir)
		}
	})
	return s.stopErr
}

// startServer runs a prepared server and waits until probe succeeds.
func startServer(ctx context.Context, run launchConfig, port int, url func(addr string) string, stop syscall.Signal,
	probe func(ctx context.Context, addr string) error,
) (*Server, error) {
	process, exited, err := launch(run)
	if err != nil {
		return nil, err
	}
	addr := loopback(port)
	server := &Server{Addr: addr, URL: url(addr), Process: process, DataDir: run.dir, stopSignal: stop}
	err = await(ctx, readyTimeout, exited, func(ctx context.Context) error { return probe(ctx, addr) })
	if err != nil {
		return nil, errors.Join(withLog(err, run.log), server.Stop())
	}
	return server, nil
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

// onFreePort runs start with the given port, or when that is 0 with free ones until one was not taken in the meantime.
func onFreePort(port int, start func(port int) (*Server, error)) (*Server, error) {
	if port != 0 {
		if err := portIsFree(port); err != nil {
			return nil, err
		}
		return start(port)
	}
	var errs []error
	for range portAttempts {
		free, err := freePort()
		if err != nil {
			return nil, err
		}
		server, err := start(free)
		if err == nil {
			return server, nil
		}
		errs = append(errs, err)
		if !strings.Contains(strings.ToLower(err.Error()), "in use") {
			break
		}
	}
	return nil, errors.Join(errs...)
}

// freePort returns a loopback port that nobody listens on at this moment.
func freePort() (int, error) {
	l, err := listen(0)
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err := errors.Join(err, l.Close()); err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	return strconv.Atoi(port)
}

// portIsFree fails when somebody listens on the loopback port already: a probe would take their server for ours.
func portIsFree(port int) error {
	l, err := listen(port)
	if err != nil {
		return err // "listen tcp 127.0.0.1:55432: bind: address already in use"
	}
	return l.Close()
}

// withLog adds the end of a log to an error.
func withLog(err error, path string) error {
	if err == nil || interrupted(err) {
		return err
	}
	return fmt.Errorf("%w; the end of %s:\n%s", err, path, tail(path))
}

// tail returns the last lines of a log file for an error message.
func tail(path string) string {
	const lines = 8
	data, err := os.ReadFile(path)
	if err != nil {
		return "(no log: " + err.Error() + ")"
	}
	parts := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	return string(bytes.Join(parts[max(0, len(parts)-lines):], []byte("\n")))
}
