package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/oncepay/oncepay/internal/localserver"
)

// nativeDriver runs the services of a stack as processes of this machine.
type nativeDriver struct{ *Stack }

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
		return p.Stop(ctx, signal, stopGrace)
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

// killDelay is how long a process that was killed a moment ago may still seem to run.
const killDelay = 200 * time.Millisecond

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
	defer d.release()
	if err := d.hold(ctx, name); err != nil {
		return err
	}
	run, err := d.prepare(ctx, name)
	if err != nil {
		return err
	}
	_, err = d.spawn(name, run)
	return err
}

func (d *nativeDriver) conditions(context.Context) (map[string]condition, error) {
	all := map[string]condition{}
	for name, one := range d.state.Services {
		switch p := one.Process; {
		case p.IsPaused():
			all[name] = condition{paused, "pid " + strconv.Itoa(p.PID)}
		case p.Alive():
			all[name] = condition{running, "pid " + strconv.Itoa(p.PID)}
		}
	}
	return all, nil
}

func (d *nativeDriver) down(ctx context.Context) error {
	for turn := range 4 {
		var stopping errgroup.Group
		for _, s := range services {
			if s.turn != turn {
				continue
			}
			stopping.Go(func() error {
				if err := d.control(ctx, "stop", s.name); err != nil {
					return fmt.Errorf("stop %s: %w", s.name, err)
				}
				return nil
			})
		}
		if err := stopping.Wait(); err != nil {
			return err
		}
	}
	var errs []error
	for _, name := range d.Services() {
		if dir := d.known(name).Dir; localserver.IsTemporaryDir(dir) {
			errs = append(errs, os.RemoveAll(dir))
		}
	}
	return errors.Join(errs...)
}

// logPath is the file that a service or a step writes to.
func (s *Stack) logPath(name string) string { return filepath.Join(s.Dir, "logs", name+".log") }

// logs leaves the reading to tail(1), which follows files over a restart, too.
func (d *nativeDriver) logs(ctx context.Context, out io.Writer, names []string, follow bool) error {
	args := []string{"-n", "+1"}
	if follow {
		args = []string{"-n", "10", "-F"}
	}
	found := false
	for _, name := range names {
		if path := d.logPath(name); localserver.IsFile(path) {
			args, found = append(args, path), true
		}
	}
	if !found {
		return fmt.Errorf("%s: no logs yet", strings.Join(names, ", "))
	}
	return show(ctx, exec.CommandContext(ctx, "tail", args...), out)
}

// show runs a command that writes logs, until it or ctx ends.
func show(ctx context.Context, cmd *exec.Cmd, out io.Writer) error {
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("show logs: %w", err)
	}
	return nil
}

// Oncepay runs a command of oncepay's as an operator would, such as "outbox", "replay", "--since",
// "1m", and returns what it printed, which is in the log, too. It goes past the proxy: an
// operator's connection is not a replica's. Native only.
func (s *Stack) Oncepay(ctx context.Context, args ...string) (string, error) {
	if s.state.Driver != Native {
		return "", errNativeOnly
	}
	ctx, cancel := context.WithTimeout(ctx, localserver.ReadyTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.oncepayOf(Oncepay), args...)
	cmd.Env = []string{"ENVIRONMENT=development", "DATABASE_URL=" + localserver.PostgresURL(s.PostgresPrimary()),
		"DATABASE_SERVICE_ROLE=" + localserver.ServiceRole, "DATABASE_SERVICE_PASSWORD=" + localserver.ServicePassword}
	out, err := cmd.CombinedOutput()
	if err := errors.Join(err, ctx.Err(), os.WriteFile(s.logPath(args[0]), out, 0o600)); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return string(out), nil
}
