package testenv

import (
	"context"
	"errors"
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
var native = backend{"native", startProcess}

func checkPrograms() error {
	_, postgresErr := programs.PostgreSQL.Find()
	_, redisErr := programs.Redis.Find()
	return errors.Join(postgresErr, redisErr)
}

func startProcess(ctx context.Context, kind kind, cfg localserver.Config) (*Server, error) {
	dir, err := makeDir()
	if err != nil {
		return nil, err
	}
	cfg.Dir, cfg.DieWithParent = dir, true
	s, err := kind.Start(ctx, cfg)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	remove := func() error { return errors.Join(s.Stop(), os.RemoveAll(dir)) }
	return &Server{Addr: s.Addr, URL: s.URL, process: s, remove: remove}, nil
}

// makeDir makes a temporary directory, which a later run removes if this one is killed.
func makeDir() (string, error) {
	sweep()
	return os.MkdirTemp("", owner()+"-")
}

// sweep removes the directories of test binaries that were killed, once per binary.
var sweep = sync.OnceFunc(func() {
	found, _ := filepath.Glob(filepath.Join(os.TempDir(), ownerPrefix()+"*"))
	for _, dir := range found {
		if isOrphan(filepath.Base(dir)) {
			_ = os.RemoveAll(dir)
		}
	}
})

// owner tells what this test binary has made from what others have.
func owner() string { return ownerPrefix() + strconv.Itoa(os.Getpid()) }

func ownerPrefix() string {
	host, _ := os.Hostname()
	return "oncepay-testenv-" + host + "-"
}

// isOrphan reports whether a name begins with the owner of a process of this host that is gone.
func isOrphan(name string) bool {
	own, found := strings.CutPrefix(name, ownerPrefix())
	digits, _, _ := strings.Cut(own, "-")
	pid, err := strconv.Atoi(digits)
	return found && err == nil && pid > 0 && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}
