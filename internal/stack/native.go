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

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/wait"
)

const (
	// keepTimeout bounds the question whether a service that runs already may stay.
	keepTimeout = 3 * time.Second

	// stopGrace is what a service gets to end in order before it is killed. A replica that is busy
	// with a slow payment could take a minute; who stops a stack by hand doesn't want to wait for
	// it, and nothing is lost.
	stopGrace = 10 * time.Second

	// lentTimeout bounds the wait for a port that a client's connection uses: the kernel keeps it
	// for a minute after the connection's end (TIME_WAIT), and probes and tests hold connections
	// for seconds.
	lentTimeout = 75 * time.Second
)

// native runs the services as processes of this machine.
type native struct {
	*Stack
	held []*localserver.Port // while `up` starts the services
}

func (n *native) logPath(name string) string { return filepath.Join(n.Dir, "logs", name+".log") }

func (n *native) makeDirs() error { return os.MkdirAll(filepath.Join(n.Dir, "logs"), 0o755) }

// up starts the data stores while the programs are being built, and the replicas when the schema is
// there.
func (n *native) up(ctx context.Context) error {
	if err := n.makeDirs(); err != nil {
		return err
	}
	if err := n.holdPorts(ctx); err != nil {
		return err
	}
	defer n.release()
	if err := n.installMissing(ctx); err != nil {
		return err
	}
	stores, storesCtx := errgroup.WithContext(ctx)
	stores.Go(func() error { return n.ensurePrimary(storesCtx) })
	stores.Go(func() error { return n.ensureRedis(storesCtx) })
	stores.Go(func() error {
		if err := n.build(storesCtx, ""); err != nil {
			return err
		}
		if n.direct {
			return n.ensure(storesCtx, PSP)
		}
		return n.ensureAll(storesCtx, Proxy, PSP)
	})
	if err := stores.Wait(); err != nil {
		return err
	}
	if err := n.ensureStandby(ctx); err != nil {
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

// holdPorts takes the ports of the services that don't run before anything is started, so that a
// stranger on one of them is named at once and the kernel lends none of them to a client meanwhile.
func (n *native) holdPorts(ctx context.Context) error {
	var errs []error
	for _, name := range n.services() {
		if !n.state.service(name).Process.Alive() {
			errs = append(errs, n.hold(ctx, name))
		}
	}
	if err := errors.Join(errs...); err != nil {
		n.release()
		return fmt.Errorf("%w\n%w (stop what is there, or take other ports with --port-offset 1000)", err, errNothingStarted)
	}
	return nil
}

func (n *native) release() {
	release(n.held)
	n.held = nil
}

func release(ports []*localserver.Port) {
	for _, port := range ports {
		port.Release()
	}
}

// hold takes the ports of one service. It waits for a port that is lent to a client, as only time
// brings that back.
func (n *native) hold(ctx context.Context, name string) error {
	var errs []error
	for _, number := range n.allPorts(name) {
		port, err := localserver.HoldPort(number)
		if taken, ok := errors.AsType[*localserver.TakenError](err); ok && taken.Lent {
			n.printf("%v: waiting up to %s for it\n", taken, lentTimeout)
			err = wait.For(ctx, lentTimeout, pollInterval, func(context.Context) error {
				port, err = localserver.HoldPort(number)
				return err
			})
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
			continue
		}
		n.held = append(n.held, port)
	}
	return errors.Join(errs...)
}

func (n *native) ensureAll(ctx context.Context, names ...string) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range names {
		group.Go(func() error { return n.ensure(ctx, name) })
	}
	return group.Wait()
}

// ensure leaves a service that is well and has the right settings alone, and otherwise starts it
// anew.
func (n *native) ensure(ctx context.Context, name string) error {
	t := n.step(name, n.addr(name))
	run, err := n.prepare(ctx, name)
	if err != nil {
		return t.failed(err)
	}
	known := n.state.service(name)
	if known.Process.Alive() {
		_ = known.Process.Signal(syscall.SIGCONT)
		if known.Settings == run.Digest() && n.isWell(ctx, name) {
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
	return wait.For(ctx, keepTimeout, pollInterval, func(ctx context.Context) error { return n.probe(ctx, name) }) == nil
}

// launch starts a process and waits until it is ready.
func (n *native) launch(ctx context.Context, name string, run localserver.Command) error {
	exited, err := n.spawn(name, run)
	if err != nil {
		return err
	}
	err = localserver.AwaitReady(ctx, exited, func(ctx context.Context) error { return n.probe(ctx, name) })
	return localserver.WithLog(err, run.Log)
}

// spawn starts a process and remembers it at once.
func (n *native) spawn(name string, run localserver.Command) (exited <-chan struct{}, err error) {
	process, exited, err := run.Start()
	if err != nil {
		return nil, err
	}
	service := serviceState{Process: process, Settings: run.Digest(), Dir: run.Dir, Started: time.Now()}
	if err := n.state.setService(name, service); err != nil {
		return nil, errors.Join(err, process.Kill())
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

// runOncepay goes past the proxy: an operator's connection is not a replica's. The output is in the
// log, too.
func (n *native) runOncepay(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, localserver.ReadyTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, n.program("oncepay"), args...)
	cmd.Env = []string{"ENVIRONMENT=development", "DATABASE_URL=" + localserver.PostgresURL(n.PostgresPrimary())}
	out, err := cmd.CombinedOutput()
	if err := errors.Join(err, ctx.Err(), os.WriteFile(n.logPath(args[0]), out, 0o644)); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return string(out), nil
}

// prepare makes what a service needs to start.
func (n *native) prepare(ctx context.Context, name string) (run localserver.Command, err error) {
	dir := n.state.service(name).Dir // a temporary one, perhaps
	if dir == "" {
		dir = filepath.Join(n.Dir, name)
	}
	log := n.logPath(name)
	switch name {
	case Postgres:
		run, _, err = localserver.PostgresCommand(ctx, localserver.PostgresConfig{Dir: dir, Port: n.port(Postgres), Fsync: true, Log: log})
		return run, err
	case PostgresStandby:
		run, _, err = localserver.StandbyCommand(ctx, localserver.PostgresConfig{Dir: dir, Port: n.port(name), Fsync: true, Log: log},
			n.via(PostgresStandby, Postgres))
		return run, err
	case Redis, RedisReplica:
		run, _, err = localserver.RedisCommand(localserver.RedisConfig{Dir: dir, Port: n.port(name), Log: log})
		if err == nil && n.isReplicated() {
			err = n.replicate(ctx, name, &run)
		}
		return run, err
	case Sentinel1, Sentinel2, Sentinel3:
		return n.prepareSentinel(ctx, name, dir, log)
	case Nginx:
		return prepareNginx(n.root, dir, log, n.ports)
	case Proxy:
		run, err = n.ours(n.program("stack"), log, nil, "proxy", "--control", n.addr(Proxy), "--port-offset", strconv.Itoa(n.offset))
		for _, port := range n.held { // it outlives `up`, so it holds them for the restarts of the others
			run.Held = append(run.Held, port.Socket)
		}
		return run, err
	case PSP:
		return n.ours(n.program("pspsim"), log, []string{"PSPSIM_ADDR=" + n.addr(PSP), "PSPSIM_DATA=" + filepath.Join(n.Dir, "pspsim.journal"),
			"PSPSIM_WEBHOOK_URL=" + n.webhookURL(), "PSPSIM_WEBHOOK_SECRET=" + webhookSecret})
	default:
		return n.ours(cmp.Or(n.state.data.Replica, n.program("oncepay")), log, n.replicaEnv(name), "serve")
	}
}

// ours describes a start of one of our own programs, in a clean environment: the settings are what
// is written here.
func (n *native) ours(path, log string, env []string, args ...string) (localserver.Command, error) {
	digest, err := fileDigest(path)
	if err != nil {
		return localserver.Command{}, err
	}
	return localserver.Command{Path: path, Args: args, Env: env, Dir: n.Dir, Log: log, Content: digest}, nil
}

// replicaEnv reaches everything through the proxy.
func (n *native) replicaEnv(name string) []string {
	return append([]string{
		"ENVIRONMENT=development",
		"REPLICA=" + name,
		"HTTP_ADDR=" + n.addr(name),
		"OPS_ADDR=" + n.ops(name),
		"DATABASE_URL=" + n.databaseURL(name),
		"REDIS_URL=" + n.redisURL(name),
		"PSP_URL=http://" + n.via(name, PSP),
		"PSP_WEBHOOK_SECRET=" + webhookSecret,
	}, n.state.data.Env...)
}

func (n *native) start(ctx context.Context, name string) error {
	if name == Postgres && n.state.data.Promoted {
		return errDiverged
	}
	if n.state.service(name).Process.Alive() {
		return nil
	}
	if err := n.hold(ctx, name); err != nil {
		return err
	}
	defer n.release()
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
	if name == Postgres || name == PostgresStandby {
		return syscall.SIGINT // fast shutdown: don't wait for clients
	}
	return syscall.SIGTERM
}

func (n *native) kill(_ context.Context, name string) error {
	return n.state.service(name).Process.Kill()
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
			if p.IsPaused() {
				c.state = paused
			}
		}
		all[name] = c
	}
	return all, nil
}

// down stops nginx first and the stores last, so that no request meets a service without its
// stores.
func (n *native) down(ctx context.Context, keepData bool) error {
	for _, group := range [][]string{{Nginx}, {API1, API2}, sentinels, {PSP, Redis, RedisReplica, Postgres, PostgresStandby, Proxy}} {
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
		if localserver.IsTemporaryDir(dir) && (!keepData || name != Postgres) {
			errs = append(errs, os.RemoveAll(dir))
		}
	}
	return errors.Join(errs...)
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
