// Package native runs the services of a stack as processes of this machine.
package native

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

	"golang.org/x/sync/errgroup"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/stack/deployment"
	"github.com/oncepay/oncepay/internal/stack/topology"
)

// Driver runs the services of a deployment.
type Driver struct {
	*deployment.Deployment
	// NoInstall makes Up refuse instead of installing missing programs.
	NoInstall bool

	held []*localserver.Port // while `up` starts the services
}

// Start starts a service that does not run, and does not wait until it is ready.
func (d *Driver) Start(ctx context.Context, name string) error {
	if d.Ended && name == d.StandbyServer() {
		return errDiverged
	}
	if d.State.Service(name).Process.Alive() {
		return nil
	}
	if err := d.hold(ctx, name); err != nil {
		return err
	}
	defer d.release()
	run, err := d.prepare(ctx, name)
	if err != nil {
		return err
	}
	_, err = d.spawn(name, run)
	return err
}

// Stop ends a service in order.
func (d *Driver) Stop(ctx context.Context, name string) error {
	signal := syscall.SIGTERM
	if slices.Contains(topology.PostgresPair, name) {
		signal = syscall.SIGINT // fast shutdown: don't wait for clients
	}
	return d.State.Service(name).Process.Stop(ctx, signal, deployment.StopGrace)
}

// Kill ends a service at once.
func (d *Driver) Kill(_ context.Context, name string) error {
	return d.State.Service(name).Process.Kill()
}

// Pause stops every process of a service: one session of PostgreSQL that went on would answer.
func (d *Driver) Pause(_ context.Context, name string) error {
	return d.State.Service(name).Process.SignalTree(syscall.SIGSTOP)
}

// Resume lets a paused service go on.
func (d *Driver) Resume(_ context.Context, name string) error {
	return d.State.Service(name).Process.SignalTree(syscall.SIGCONT)
}

// Conditions tells of every service whether it runs.
func (d *Driver) Conditions(context.Context) (map[string]deployment.Condition, error) {
	all := map[string]deployment.Condition{}
	for _, name := range d.Services() {
		p := d.State.Service(name).Process
		c := deployment.Condition{State: deployment.Stopped}
		if p.Alive() {
			c = deployment.Condition{State: deployment.Running, ID: "pid " + strconv.Itoa(p.PID)}
			if p.IsPaused() {
				c.State = deployment.Paused
			}
		}
		all[name] = c
	}
	return all, nil
}

// stopOrder has nginx first and the stores last, so that no request meets a service without its
// stores.
var stopOrder = [][]string{
	{topology.Console}, {topology.Nginx}, topology.Replicas, topology.Sentinels,
	{topology.PSP, topology.Mail, topology.Redis, topology.RedisReplica, topology.Postgres, topology.PostgresStandby, topology.Proxy},
}

// Down stops all services and removes what they have outside the stack's folder; with keepData not
// the data of PostgreSQL.
func (d *Driver) Down(ctx context.Context, keepData bool) error {
	for _, names := range stopOrder {
		var stopping errgroup.Group
		for _, name := range names {
			stopping.Go(func() error {
				if err := d.Stop(ctx, name); err != nil {
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
	for _, name := range d.Services() {
		dir := d.State.Service(name).Dir
		if localserver.IsTemporaryDir(dir) && (!keepData || !slices.Contains(topology.PostgresPair, name)) {
			errs = append(errs, os.RemoveAll(dir))
		}
	}
	return errors.Join(errs...)
}

// Logs leaves the reading to tail(1), which follows files over a restart, too.
func (d *Driver) Logs(ctx context.Context, out io.Writer, services []string, follow bool) error {
	var paths []string
	for _, name := range services {
		if path := d.LogPath(name); localserver.IsFile(path) {
			paths = append(paths, path)
		}
	}
	if len(paths) == 0 {
		return fmt.Errorf("%s: no logs yet", strings.Join(services, ", "))
	}
	args := []string{"-n", "+1"}
	if follow {
		args = []string{"-n", "10", "-F"}
	}
	cmd := exec.CommandContext(ctx, "tail", slices.Concat(args, paths)...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("show logs: %w", err)
	}
	return nil
}

// Oncepay runs a one-shot command of oncepay's to its end and returns what it printed, which is in
// the log, too. It goes past the proxy: an operator's connection is not a replica's.
func (d *Driver) Oncepay(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, localserver.ReadyTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, d.OncepayOf(deployment.Oncepay), args...)
	cmd.Env = []string{"ENVIRONMENT=development", "DATABASE_URL=" + localserver.PostgresURL(d.PostgresPrimary()),
		"DATABASE_SERVICE_ROLE=" + localserver.ServiceRole, "DATABASE_SERVICE_PASSWORD=" + localserver.ServicePassword}
	out, err := cmd.CombinedOutput()
	if err := errors.Join(err, ctx.Err(), os.WriteFile(d.LogPath(args[0]), out, 0o600)); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return string(out), nil
}

func (d *Driver) makeDirs() error { return os.MkdirAll(filepath.Dir(d.LogPath("any")), 0o755) }
