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

var _ backend = native{}

// sweepOnce removes the directories of killed test binaries, once per binary.
var sweepOnce sync.Once

func newNative() (backend, error) {
	_, postgresErr := programs.PostgreSQL.Find()
	_, redisErr := programs.Redis.Find()
	if err := errors.Join(postgresErr, redisErr); err != nil {
		return nil, err
	}
	sweepOnce.Do(sweepDirs)
	return native{}, nil
}

func (native) name() string { return "native" }
func (native) close() error { return nil }

func (native) startPostgres(ctx context.Context) (instance, error) {
	return startProcess(ctx, func(ctx context.Context, dir string, port int) (*localserver.Server, error) {
		return localserver.StartPostgres(ctx, localserver.PostgresConfig{Dir: dir, Port: port, DieWithParent: true})
	})
}

func (native) startRedis(ctx context.Context, settings ...string) (instance, error) {
	return startNativeRedis(ctx, localserver.RedisConfig{Settings: settings})
}

func startNativeRedis(ctx context.Context, cfg localserver.RedisConfig) (instance, error) {
	return startProcess(ctx, func(ctx context.Context, dir string, port int) (*localserver.Server, error) {
		cfg.Dir, cfg.Port, cfg.DieWithParent = dir, port, true
		return localserver.StartRedis(ctx, cfg)
	})
}

// process is a server process with its data directory and its port.
type process struct {
	launch func(ctx context.Context, dir string, port int) (*localserver.Server, error)
	dirs   []string          // ours to remove
	port   *localserver.Port // held while the server is stopped, too

	mu     sync.Mutex
	server *localserver.Server
}

var _ instance = (*process)(nil)

func startProcess(ctx context.Context, launch func(context.Context, string, int) (*localserver.Server, error)) (instance, error) {
	dir, err := os.MkdirTemp("", dirPrefix()+strconv.Itoa(os.Getpid())+"-")
	if err != nil {
		return nil, fmt.Errorf("make a data directory: %w", err)
	}
	port, err := localserver.HoldPort(0)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	server, err := launch(ctx, dir, port.Number)
	if err != nil {
		port.Release()
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	// The data may have gone elsewhere, if the server's user can't enter the temporary directory.
	return &process{launch: launch, dirs: []string{dir, server.DataDir}, port: port, server: server}, nil
}

func (p *process) current() *localserver.Server {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.server
}

func (p *process) addr() string                 { return p.current().Addr }
func (p *process) url() string                  { return p.current().URL }
func (p *process) stop(context.Context) error   { return p.current().Stop() }
func (p *process) pause(context.Context) error  { return p.current().Process.Signal(syscall.SIGSTOP) }
func (p *process) resume(context.Context) error { return p.current().Process.Signal(syscall.SIGCONT) }

// start launches the server again.
func (p *process) start(ctx context.Context) error {
	server, err := p.launch(ctx, p.current().DataDir, p.port.Number)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.server = server
	return nil
}

func (p *process) remove() error {
	errs := []error{p.current().Stop()}
	p.port.Release()
	for _, dir := range p.dirs {
		errs = append(errs, os.RemoveAll(dir))
	}
	return errors.Join(errs...)
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
