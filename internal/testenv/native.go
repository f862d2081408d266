package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/programs"
)

// native runs the machine's own PostgreSQL and Redis as private processes, which the kernel ends
// when the test binary dies (Linux).
type native struct{}

// sweepOnce removes the directories of killed test binaries, once per binary.
var sweepOnce sync.Once

func newNative() (backend, error) {
	_, postgresErr := programs.PostgreSQL.Find()
	_, redisErr := programs.Redis.Find()
	return native{}, errors.Join(postgresErr, redisErr)
}

func (native) name() string { return "native" }

func (native) start(ctx context.Context, kind kind, cfg localserver.Config) (*instance, error) {
	sweepOnce.Do(sweepDirs)
	dir, err := makeDir()
	if err != nil {
		return nil, err
	}
	cfg.Dir, cfg.DieWithParent = dir, true
	s, err := kind.Start(ctx, cfg)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	signal := func(sig syscall.Signal) func(context.Context) error {
		return func(context.Context) error { return s.Process.Signal(sig) }
	}
	return &instance{
		addr: s.Addr, url: s.URL, stop: func(context.Context) error { return s.Halt() }, start: s.Start,
		pause: signal(syscall.SIGSTOP), resume: signal(syscall.SIGCONT),
		remove: func() error { return errors.Join(s.Stop(), os.RemoveAll(dir)) },
	}, nil
}

// makeDir makes a temporary directory that is removed by a later run if this one is killed.
func makeDir() (string, error) {
	dir, err := os.MkdirTemp("", dirPrefix()+strconv.Itoa(os.Getpid())+"-")
	if err != nil {
		return "", fmt.Errorf("make a directory: %w", err)
	}
	return dir, nil
}

// dirPrefix begins the name of our temporary directories on this host; the process's id follows.
func dirPrefix() string {
	host, _ := os.Hostname()
	return "oncepay-testenv-" + host + "-"
}

// sweepDirs removes the directories of test binaries that were killed: those whose process is gone.
func sweepDirs() {
	found, _ := filepath.Glob(filepath.Join(os.TempDir(), dirPrefix()+"*"))
	for _, dir := range found {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), dirPrefix()), "-")
		if processGone(pid) {
			_ = os.RemoveAll(dir)
		}
	}
}

// processGone reports whether text is the id of a process that does not exist.
func processGone(text string) bool {
	pid, err := strconv.Atoi(text)
	return err == nil && pid > 0 && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}
