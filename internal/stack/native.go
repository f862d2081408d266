package stack

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/programs"
	"github.com/oncepay/oncepay/internal/wait"
)

const (
	// keepTimeout bounds the question whether a service that runs already may stay.
	keepTimeout = 3 * time.Second

	// killDelay is how long a process that was killed a moment ago may still seem to run.
	killDelay = 200 * time.Millisecond

	// webhookSecret signs pspsim's events. Like the demo API keys it is no secret: a stack is for
	// development.
	webhookSecret = "whsec_Zm9yIGRldmVsb3BtZW50IG9ubHksIGtub3duIHRvIGFsbA=="
)

// nativeDriver runs the services of a stack as processes of this machine.
type nativeDriver struct{ *Stack }

// up starts what does not depend on our programs while these are being built, and the replicas when
// the schema is there. The sentinels would take a pair of servers that is about to start for dead.
func (d *nativeDriver) up(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Dir(d.logPath("any")), 0o755); err != nil {
		return err
	}
	defer d.release()
	idle := slices.DeleteFunc(d.Services(), func(name string) bool { return d.known(name).Process.Alive() })
	for _, name := range idle {
		_ = d.killOrphans(name) // otherwise hold reports that its port is taken
	}
	if err := d.hold(ctx, idle...); err != nil {
		return err
	}
	needed := []string{programs.Stack}
	if d.IsPooled() {
		needed = append(needed, programs.Pooler)
	}
	if err := programs.Ensure(ctx, d.options.Out, d.options.NoInstall, needed...); err != nil {
		return fmt.Errorf("%w: %w", errNothingStarted, err)
	}
	building, both := errgroup.WithContext(ctx)
	building.Go(func() error { return d.build(both) })
	building.Go(func() error { return d.ensure(both, d.Primary(), Redis) })
	err := building.Wait()
	for _, do := range []func() error{
		func() error { return d.ensure(ctx, Proxy, PSP, Mail, RedisReplica) },
		func() error { return d.ensure(ctx, sentinels...) },
		func() error { return d.ensureStandby(ctx) },
		func() error { return d.ensure(ctx, PgBouncer) },
		func() error { return d.oneShot(ctx, "migrate", "up") },
		func() error { return d.oneShot(ctx, "seed") },
		func() error { return d.ensure(ctx, API1, API2, Nginx, Console) },
	} {
		if err == nil {
			err = do()
		}
	}
	return err
}

func (d *nativeDriver) oneShot(ctx context.Context, args ...string) error {
	return d.step(args[0], "", func() (string, error) {
		_, err := d.Oncepay(ctx, args...)
		return "done", err
	})
}

// ensure leaves services that are well and have the right settings alone, and otherwise starts them
// anew, all at once. Those that are no part of this stack are left out.
func (d *nativeDriver) ensure(ctx context.Context, names ...string) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range names {
		if slices.Contains(d.Services(), name) {
			group.Go(func() error {
				return d.step(name, d.Addr(name), func() (string, error) { return d.ensureOne(ctx, name) })
			})
		}
	}
	return group.Wait()
}

// ensureOne returns what it has come to.
func (d *nativeDriver) ensureOne(ctx context.Context, name string) (state string, err error) {
	run, err := d.prepare(ctx, name)
	if err != nil {
		return "", err
	}
	probe := func(ctx context.Context) error { return d.probe(ctx, name) }
	if known := d.known(name); known.Process.Alive() {
		_ = known.Process.Signal(syscall.SIGCONT)
		if known.Settings == run.Digest() && wait.For(ctx, keepTimeout, localserver.PollInterval, probe) == nil {
			return "ready (was running)", nil
		}
		if err := d.control(ctx, "stop", name); err != nil {
			return "", err
		}
	}
	if err := d.spawn(name, run); err != nil {
		return "", err
	}
	return "ready", localserver.WithLog(localserver.AwaitReady(ctx, d.known(name).Process, probe), run.Log)
}

// spawn starts a process and remembers it at once.
func (d *nativeDriver) spawn(name string, run localserver.Command) error {
	process, err := run.Start()
	if err != nil {
		return err
	}
	err = d.update(func(data *state) {
		data.Services[name] = serviceState{Process: process, Settings: run.Digest(), Dir: run.Dir}
	})
	if err != nil {
		return errors.Join(err, process.Kill())
	}
	return nil
}

// spawnAgain starts a service that does not run, and does not wait until it is ready.
func (d *nativeDriver) spawnAgain(ctx context.Context, name string) error {
	if d.Ended && name == d.StandbyServer() {
		return errDiverged
	}
	dying, cancel := context.WithTimeout(ctx, killDelay)
	defer cancel()
	if d.known(name).Process.Wait(dying) != nil {
		return ctx.Err()
	}
	_ = d.killOrphans(name) // otherwise hold reports that its port is taken
	defer d.release()
	if err := d.hold(ctx, name); err != nil {
		return err
	}
	run, err := d.prepare(ctx, name)
	if err == nil {
		err = d.spawn(name, run)
	}
	return err
}

// dirOf is where a service has its files, a temporary folder perhaps.
func (d *nativeDriver) dirOf(name string) string {
	return cmp.Or(d.known(name).Dir, filepath.Join(d.Dir, name))
}

// killOrphans kills the processes that an ended service has left, which may hold its port.
func (d *nativeDriver) killOrphans(name string) error {
	dir, _ := filepath.EvalSymlinks(d.known(name).Dir) // a directory that is gone has no processes
	return d.known(name).Process.KillOrphans(dir)
}

// prepare makes what a service needs to start, and returns the command that starts it.
func (d *nativeDriver) prepare(ctx context.Context, name string) (run localserver.Command, err error) {
	cfg := localserver.Config{Dir: d.dirOf(name), Port: d.Port(name), Log: d.logPath(name)}
	switch name {
	case d.Primary():
		return localserver.Postgres.Command(ctx, cfg)
	case d.StandbyServer():
		return localserver.Standby(d.Via(name, d.Primary())).Command(ctx, cfg)
	case PgBouncer:
		return localserver.PgBouncer(d.PostgresPrimary(), "transaction").Command(ctx, cfg)
	case Redis, RedisReplica:
		return d.prepareRedis(ctx, cfg)
	case Sentinel1, Sentinel2, Sentinel3:
		return localserver.Sentinel(d.LikelyMaster(ctx)).Command(ctx, cfg)
	case Nginx:
		return prepareNginx(d.root, cfg, d.Topology)
	}
	// One of our own programs, in a clean environment: the settings are what is written here.
	run = localserver.Command{Dir: d.Dir, Log: cfg.Log, Path: d.Program("stack")}
	switch name {
	case Proxy:
		run.Args = []string{"proxy", d.Addr(name), strconv.Itoa(d.Offset)}
		for _, port := range d.held { // it outlives `up`, so the others can restart on their ports
			run.Held = append(run.Held, port.Socket)
		}
	case Mail:
		run.Args = []string{"mailsink", d.Addr(name), d.Ops(name), filepath.Join(d.Dir, "mails.jsonl")}
	case Console: // in the repository and with our PATH: it starts services, as `stack start` does
		run.Args, run.Dir = []string{"console", "--dir", d.Dir}, d.root
		run.Env = []string{"PATH=" + os.Getenv("PATH")}
	case PSP:
		run.Path, run.Env = d.Program("pspsim"), []string{
			"PSPSIM_ADDR=" + d.Addr(name),
			"PSPSIM_DATA=" + filepath.Join(d.Dir, "pspsim.journal"),
			"PSPSIM_WEBHOOK_URL=" + d.URL() + "/v1/webhooks/psp", // the public door, as for a provider out in the world
			"PSPSIM_WEBHOOK_SECRET=" + webhookSecret,
		}
	default:
		run.Path, run.Args, run.Env = d.oncepayOf(name), []string{"serve"}, d.replicaEnv(name)
	}
	program, err := os.ReadFile(run.Path) // one build of it is told from another
	run.Content = fmt.Sprintf("%x", sha256.Sum256(program))
	return run, err
}

// replicaEnv reaches everything through the proxy.
func (d *nativeDriver) replicaEnv(name string) []string {
	env := []string{
		"ENVIRONMENT=development",
		"REPLICA=" + name,
		"HTTP_ADDR=" + d.Addr(name),
		"OPS_ADDR=" + d.Ops(name),
		"DATABASE_URL=" + d.databaseURL(name),
		"REDIS_URL=" + d.redisURL(name),
		"PSP_URL=http://" + d.Via(name, PSP),
		"PSP_WEBHOOK_SECRET=" + webhookSecret,
		"MAIL_URL=smtp://" + d.Via(name, Mail),
		"MAIL_FROM=Demo Shop <shop@example.com>",
		"IDEMPOTENCY_RECORD_SECRETS=for development only, known to everybody",
	}
	if d.Console { // it draws what the replicas tell, as soon as they know it
		env = append(env, "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+d.Addr(Console), "OTEL_BSP_SCHEDULE_DELAY=100")
	}
	return append(env, d.state.Env...)
}

func (d *nativeDriver) control(ctx context.Context, verb, name string) error {
	p := d.known(name).Process
	switch verb {
	case "start":
		return d.spawnAgain(ctx, name)
	case "stop":
		signal := syscall.SIGTERM
		if slices.Contains(postgresPair, name) {
			signal = syscall.SIGINT // fast shutdown: don't wait for clients
		}
		return errors.Join(p.Stop(ctx, signal, stopGrace), d.killOrphans(name))
	case "kill":
		return p.Kill()
	case "pause": // every process of a service: one session of PostgreSQL that went on would answer
		return p.SignalTree(syscall.SIGSTOP)
	case "resume":
		return p.SignalTree(syscall.SIGCONT)
	case "crash":
		// PostgreSQL's immediate shutdown: nothing is finished and nothing written, so the next
		// start recovers from the log ("Shutting Down the Server" in its manual).
		return p.Stop(ctx, syscall.SIGQUIT, stopGrace)
	case "promote":
		return d.promote(ctx)
	case "follow":
		return d.follow(ctx)
	}
	return fmt.Errorf("the native driver cannot %s", verb)
}

func (d *nativeDriver) conditions(context.Context) (map[string]ServiceStatus, error) {
	all := map[string]ServiceStatus{}
	for name, one := range d.state.Services {
		state := running
		if one.Process.IsPaused() {
			state = paused
		}
		if one.Process.Alive() {
			all[name] = ServiceStatus{State: state, ID: "pid " + strconv.Itoa(one.Process.PID)}
		}
	}
	return all, nil
}

// down stops nginx first and the stores last, so that no request meets a service without its
// stores.
func (d *nativeDriver) down(ctx context.Context) error {
	for _, names := range [][]string{{Nginx, Console}, Replicas, d.Services()} {
		var stopping errgroup.Group
		for _, name := range names {
			stopping.Go(func() error { return d.control(ctx, "stop", name) })
		}
		if err := stopping.Wait(); err != nil {
			return err
		}
	}
	var errs []error
	for _, one := range d.state.Services {
		if localserver.IsTemporaryDir(one.Dir) {
			errs = append(errs, os.RemoveAll(one.Dir))
		}
	}
	return errors.Join(errs...)
}

// logPath is the file that a service or a step writes to.
func (s *Stack) logPath(name string) string { return filepath.Join(s.Dir, "logs", name+".log") }

// logs leaves the reading to tail(1), which follows files over a restart, too.
func (d *nativeDriver) logs(ctx context.Context, names []string, follow bool) *exec.Cmd {
	args := []string{"-n", "+1"}
	if follow {
		args = []string{"-n", "10", "-F"}
	}
	for _, name := range names {
		args = append(args, d.logPath(name))
	}
	return exec.CommandContext(ctx, "tail", args...)
}

// Oncepay runs a command of oncepay's as an operator would, such as "outbox", "replay", "--since",
// "1m", and returns what it printed, which is in the log, too. It goes past the proxy: an
// operator's connection is not a replica's.
func (s *Stack) Oncepay(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, localserver.ReadyTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.oncepayOf(Oncepay), args...)
	cmd.Env = []string{"ENVIRONMENT=development", "DATABASE_URL=" + localserver.PostgresURL(s.PostgresPrimary()),
		"DATABASE_SERVICE_ROLE=" + localserver.ServiceRole, "DATABASE_SERVICE_PASSWORD=" + localserver.ServicePassword}
	out, err := output(cmd)
	return out, errors.Join(err, os.WriteFile(s.logPath(args[0]), []byte(out), 0o600))
}
