package stack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// keepTimeout bounds the question whether a service that runs already may stay.
	keepTimeout = 3 * time.Second

	// stopGrace is what a service gets to end in order before it is killed. A replica that is busy with a slow payment could take
	// a minute; who stops a stack by hand doesn't want to wait for it, and nothing is lost.
	stopGrace = 10 * time.Second
)

// native runs the services as processes of this machine.
type native struct{ *Stack }

func (n *native) logPath(name string) string { return filepath.Join(n.Dir, "logs", name+".log") }

func (n *native) makeDirs() error { return os.MkdirAll(filepath.Join(n.Dir, "logs"), 0o755) }

// up starts the data stores while the programs are being built, and the replicas when the schema is there.
func (n *native) up(ctx context.Context) error {
	if err := n.makeDirs(); err != nil {
		return err
	}
	if err := n.checkAllPorts(); err != nil {
		return err
	}
	if err := n.installMissing(ctx); err != nil {
		return err
	}
	stores, storesCtx := errgroup.WithContext(ctx)
	stores.Go(func() error { return n.ensure(storesCtx, Postgres) })
	stores.Go(func() error { return n.ensureRedis(storesCtx) })
	stores.Go(func() error {
		if err := n.build(storesCtx, ""); err != nil {
			return err
		}
		return n.ensureAll(storesCtx, Proxy, PSP)
	})
	if err := stores.Wait(); err != nil {
		return err
	}
	if err := n.oncepay(ctx, "migrate", "up"); err != nil {
		return err
	}
	if err := n.oncepay(ctx, "seed"); err != nil {
		return err
	}
	return n.ensureAll(ctx, API1, API2, Nginx)
}

// checkAllPorts looks before anything is started, so that a stranger on a port is named at once.
func (n *native) checkAllPorts() error {
	var errs []error
	for _, name := range n.services() {
		if !n.state.service(name).Process.Alive() {
			errs = append(errs, checkPorts(name, n.allPorts(name)))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w\n%w (stop what is there, or take other ports with --port-offset 1000)", err, errNothingStarted)
	}
	return nil
}

func (n *native) ensureAll(ctx context.Context, names ...string) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range names {
		group.Go(func() error { return n.ensure(ctx, name) })
	}
	return group.Wait()
}

// ensure leaves a service that is well and has the right settings alone, and otherwise starts it anew.
func (n *native) ensure(ctx context.Context, name string) error {
	t := n.step(name, n.addr(name))
	run, err := n.prepare(ctx, name)
	if err != nil {
		return t.failed(err)
	}
	known := n.state.service(name)
	if known.Process.Alive() {
		_ = known.Process.Signal(syscall.SIGCONT)
		if known.Settings == run.digest() && n.isWell(ctx, name) {
			t.done("ready (was running)")
			return nil
		}
		if err := n.stop(ctx, name); err != nil {
			return t.failed(err)
		}
	}
	if err := n.launch(ctx, name, run); err != nil {
		return t.failed(err)
	}
	t.done("ready")
	return nil
}

func (n *native) isWell(ctx context.Context, name string) bool {
	return await(ctx, keepTimeout, nil, func(ctx context.Context) error { return n.probe(ctx, name) }) == nil
}

// launch starts a process and waits until it is ready.
func (n *native) launch(ctx context.Context, name string, run launchConfig) error {
	exited, err := n.spawn(name, run)
	if err != nil {
		return err
	}
	err = await(ctx, readyTimeout, exited, func(ctx context.Context) error { return n.probe(ctx, name) })
	return withLog(err, run.log)
}

// spawn starts a process and remembers it at once.
func (n *native) spawn(name string, run launchConfig) (exited <-chan struct{}, err error) {
	process, exited, err := launch(run)
	if err != nil {
		return nil, err
	}
	service := serviceState{Process: process, Settings: run.digest(), Dir: run.dir, Started: time.Now()}
	if err := n.state.setService(name, service); err != nil {
		return nil, errors.Join(err, process.kill())
	}
	return exited, nil
}

// oncepay runs one of the one-shot commands of our own program to its end.
func (n *native) oncepay(ctx context.Context, args ...string) error {
	t := n.step(args[0], "")
	if _, err := n.runOncepay(ctx, args...); err != nil {
		return t.failed(err)
	}
	t.done("done")
	return nil
}

// runOncepay goes past the proxy: an operator's connection is not a replica's. The output is in the log, too.
func (n *native) runOncepay(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, n.program("oncepay"), args...)
	cmd.Env = []string{"ENVIRONMENT=development", "DATABASE_URL=" + PostgresURL(n.addr(Postgres))}
	out, err := cmd.CombinedOutput()
	if err := errors.Join(err, ctx.Err(), os.WriteFile(n.logPath(args[0]), out, 0o644)); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return string(out), nil
}

// prepare makes what a service needs to start.
func (n *native) prepare(ctx context.Context, name string) (run launchConfig, err error) {
	dir := n.state.service(name).Dir // a temporary one, perhaps
	if dir == "" {
		dir = filepath.Join(n.Dir, name)
	}
	log := n.logPath(name)
	switch name {
	case Postgres:
		run, _, err = preparePostgres(ctx, PostgresConfig{Dir: dir, Port: n.port(Postgres), Fsync: true, Log: log})
		return run, err
	case Redis, RedisReplica:
		run, _, err = prepareRedis(RedisConfig{Dir: dir, Port: n.port(name), Log: log})
		if err == nil && n.isReplicated() {
			err = n.replicate(ctx, name, &run)
		}
		return run, err
	case Sentinel1, Sentinel2, Sentinel3:
		return n.prepareSentinel(ctx, name, dir, log)
	case Nginx:
		return prepareNginx(n.root, dir, log, n.ports)
	case Proxy:
		return n.ours(n.program("stack"), log, nil, "proxy", "--control", n.addr(Proxy), "--port-offset", strconv.Itoa(n.offset))
	case PSP:
		return n.ours(n.program("pspsim"), log, []string{"PSPSIM_ADDR=" + n.addr(PSP), "PSPSIM_DATA=" + filepath.Join(n.Dir, "pspsim.journal"),
			"PSPSIM_WEBHOOK_URL=" + n.webhookURL(), "PSPSIM_WEBHOOK_SECRET=" + webhookSecret})
	default:
		return n.ours(cmp.Or(n.state.data.Replica, n.program("oncepay")), log, n.replicaEnv(name), "serve")
	}
}

// ours describes a start of one of our own programs, in a clean environment: the settings are what is written here.
func (n *native) ours(path, log string, env []string, args ...string) (launchConfig, error) {
	digest, err := fileDigest(path)
	if err != nil {
		return launchConfig{}, err
	}
	return launchConfig{path: path, args: args, env: env, dir: n.Dir, log: log, content: digest}, nil
}

// replicaEnv reaches everything through the proxy.
func (n *native) replicaEnv(name string) []string {
	return append([]string{
		"ENVIRONMENT=development",
		"REPLICA=" + name,
		"HTTP_ADDR=" + n.addr(name),
		"OPS_ADDR=" + n.ops(name),
		"DATABASE_URL=" + PostgresURL(n.via(name, Postgres)),
		"REDIS_URL=" + n.redisURL(name),
		"PSP_URL=http://" + n.via(name, PSP),
		"PSP_WEBHOOK_SECRET=" + webhookSecret,
	}, n.state.data.Env...)
}

func (n *native) start(ctx context.Context, name string) error {
	if n.state.service(name).Process.Alive() {
		return nil
	}
	if err := checkPorts(name, n.allPorts(name)); err != nil {
		return err
	}
	run, err := n.prepare(ctx, name)
	if err != nil {
		return err
	}
	_, err = n.spawn(name, run)
	return err
}

func (n *native) stop(ctx context.Context, name string) error {
	return n.state.service(name).Process.Stop(ctx, stopSignal(name), stopGrace)
}

func stopSignal(name string) syscall.Signal {
	if name == Postgres {
		return syscall.SIGINT // fast shutdown: don't wait for clients
	}
	return syscall.SIGTERM
}

func (n *native) kill(_ context.Context, name string) error {
	return n.state.service(name).Process.kill()
}

// pause stops every process of a service: one session of PostgreSQL that went on would answer.
func (n *native) pause(_ context.Context, name string) error {
	return n.state.service(name).Process.SignalTree(syscall.SIGSTOP)
}

func (n *native) resume(_ context.Context, name string) error {
	return n.state.service(name).Process.SignalTree(syscall.SIGCONT)
}

func (n *native) conditions(context.Context) (map[string]condition, error) {
	all := map[string]condition{}
	for _, name := range n.services() {
		p := n.state.service(name).Process
		c := condition{state: stopped}
		if p.Alive() {
			c = condition{state: running, id: "pid " + strconv.Itoa(p.PID)}
			if isPaused(p.PID) {
				c.state = paused
			}
		}
		all[name] = c
	}
	return all, nil
}

// down stops from the front door inwards, so that nobody meets a service whose stores are gone.
func (n *native) down(ctx context.Context, keepData bool) error {
	for _, group := range [][]string{{Nginx}, {API1, API2}, sentinels, {PSP, Redis, RedisReplica, Postgres, Proxy}} {
		var stopping errgroup.Group
		for _, name := range group {
			stopping.Go(func() error {
				if err := n.stop(ctx, name); err != nil {
					return fmt.Errorf("stop %s: %w", name, err)
				}
				return nil
			})
		}
		if err := stopping.Wait(); err != nil {
			return err
		}
	}
	var errs []error
	for _, name := range n.services() {
		dir := n.state.service(name).Dir
		if n.isOutside(dir) && (!keepData || name != Postgres) {
			errs = append(errs, os.RemoveAll(dir))
		}
	}
	return errors.Join(errs...)
}

// isOutside reports whether a service's directory is a temporary one of ours rather than in the stack's folder.
func (n *native) isOutside(dir string) bool {
	rel, err := filepath.Rel(n.Dir, dir)
	return dir != "" && (err != nil || strings.HasPrefix(rel, "..")) && strings.HasPrefix(filepath.Base(dir), tempPrefix)
}

// logs leaves the reading to tail(1), which follows files over a restart, too.
func (n *native) logs(ctx context.Context, services []string, follow bool) error {
	args := []string{"-n", "+1"}
	if follow {
		args = []string{"-n", "10", "-F"}
	}
	for _, name := range services {
		if path := n.logPath(name); isFile(path) {
			args = append(args, path)
		}
	}
	if !strings.HasSuffix(args[len(args)-1], ".log") {
		return fmt.Errorf("%s: no logs yet", strings.Join(services, ", "))
	}
	cmd := exec.CommandContext(ctx, "tail", args...)
	cmd.Stdout, cmd.Stderr = n.Out, n.Out
	if err := cmd.Run(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("show logs: %w", err)
	}
	return nil
}
