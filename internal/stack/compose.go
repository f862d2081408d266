package stack

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/wait"
)

const (
	// composeTimeout bounds one run of docker compose; the slowest part is the pull of images that
	// are not here yet, each of some 150 MB.
	composeTimeout = 10 * time.Minute

	// lookInterval is how often containers are looked at, which takes a command of its own.
	lookInterval = 250 * time.Millisecond

	// healthTimeout bounds the wait for running containers to be healthy again; their healthchecks
	// come every second.
	healthTimeout = 10 * time.Second

	// networkService is the one that publishes all ports.
	networkService = "network"
)

// composeDriver runs the services of a stack as containers, with docker compose.
type composeDriver struct{ *Stack }

// project is the name that marks our containers: one per folder, so that two checkouts don't meet.
func (d *composeDriver) project() string {
	return fmt.Sprintf("oncepay-%.4x", sha256.Sum256([]byte(d.Dir)))
}

func (d *composeDriver) image() string { return d.project() + ":local" }

// toolsImage has the provider simulator and the fault proxy.
func (d *composeDriver) toolsImage() string { return d.project() + "-tools:local" }

func (d *composeDriver) overridePath() string { return filepath.Join(d.Dir, "compose.override.json") }

// published are the ports that the containers publish, by the variables in which docker-compose.yml
// takes them, such as API_1_PORT and API_1_OPS_PORT.
func (t *Topology) published() map[string]int {
	ports := map[string]int{}
	for _, name := range t.Services() {
		variable := strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		ports[variable+"_PORT"] = t.Port(name)
		if ops := serviceOf(name).ops; ops != 0 {
			ports[variable+"_OPS_PORT"] = ops + t.Offset
		}
	}
	return ports
}

// compose is a run of docker compose on our project.
func (d *composeDriver) compose(ctx context.Context, args ...string) (*exec.Cmd, error) {
	all, err := findCompose(ctx)
	if err != nil {
		return nil, err
	}
	all = append(all, "--project-name", d.project(), "--project-directory", d.root, "--file", filepath.Join(d.root, "docker-compose.yml"))
	if localserver.IsFile(d.overridePath()) {
		all = append(all, "--file", d.overridePath())
	}
	cmd := exec.CommandContext(ctx, all[0], append(all[1:], args...)...)
	cmd.Env = append(os.Environ(), "ONCEPAY_IMAGE="+d.image(), "ONCEPAY_TOOLS_IMAGE="+d.toolsImage())
	for variable, name := range d.state.Images {
		cmd.Env = append(cmd.Env, variable+"="+name)
	}
	for variable, port := range d.published() {
		cmd.Env = append(cmd.Env, variable+"="+strconv.Itoa(port))
	}
	// Ctrl-C reaches compose as an interrupt, so that it leaves no half-made container.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = stopGrace
	return cmd, nil
}

// run runs docker compose to its end.
func (d *composeDriver) run(ctx context.Context, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, composeTimeout)
	defer cancel()
	cmd, err := d.compose(ctx, args...)
	if err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), errors.Join(err, ctx.Err()), out)
	}
	return nil
}

// docker runs a command to its end.
func docker(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, "docker", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("docker %s: %w: %s", args[0], errors.Join(err, ctx.Err()), bytes.TrimSpace(out))
	}
	return nil
}

func (d *composeDriver) up(ctx context.Context) error {
	chosen, err := chooseImages(ctx)
	if err != nil {
		return fmt.Errorf("%w (%w)", err, errNothingStarted)
	}
	if err := d.update(func(data *state) { data.Images = chosen }); err != nil {
		return err
	}
	for _, do := range []func(context.Context) error{d.checkPorts, d.buildImages, d.writeOverride} {
		if err := do(ctx); err != nil {
			return err
		}
	}
	err = d.step("compose", "up", func() (string, error) {
		if err := d.resumeAll(ctx); err != nil {
			return "", err
		}
		if err := d.run(ctx, "up", "--detach", "--no-build", "--remove-orphans"); err != nil {
			return "", err
		}
		// compose waits for what others depend on, but not for the last ones
		return "ready", wait.For(ctx, localserver.ReadyTimeout, lookInterval, d.allHealthy)
	})
	if err != nil {
		return err
	}
	for _, name := range d.Services() {
		d.printf("  %-*s %-17s ready\n", nameWidth, name, d.Addr(name))
	}
	return nil
}

// checkPorts looks before compose does, unless the ports are published by our own containers.
func (d *composeDriver) checkPorts(ctx context.Context) error {
	containers, err := d.containers(ctx)
	if err != nil || containers[networkService].State == running {
		return err
	}
	var errs []error
	for variable, port := range d.published() {
		if err := localserver.CheckPort(port); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", variable, err))
		}
	}
	return portsTaken(errors.Join(errs...))
}

// buildImages puts static binaries that are built here into empty images: no registry is needed for
// that. The build context is nothing but the binaries.
func (d *composeDriver) buildImages(ctx context.Context) error {
	if err := d.build(ctx, "CGO_ENABLED=0", "GOOS=linux"); err != nil {
		return err
	}
	return d.step("image", "", func() (string, error) {
		build := []string{"build", "--label", "oncepay.project=" + d.project(), "--file", filepath.Join(d.root, "Dockerfile.prebuilt")}
		err := docker(ctx, slices.Concat(build, []string{"--tag", d.image(), d.binDir()})...)
		if err == nil {
			err = docker(ctx, slices.Concat(build, []string{"--tag", d.toolsImage(), "--target", "tools", d.binDir()})...)
		}
		_ = d.pruneImages(ctx) // the ones that this build has replaced
		return d.image(), err
	})
}

func (d *composeDriver) pruneImages(ctx context.Context) error {
	return docker(ctx, "image", "prune", "--force", "--filter", "label=oncepay.project="+d.project())
}

// writeOverride sets the settings of --env for both replicas: compose can't take variables that the
// file doesn't name.
func (d *composeDriver) writeOverride(context.Context) error {
	env := make([]string, 0, len(d.state.Env))
	for _, pair := range d.state.Env {
		env = append(env, strings.ReplaceAll(pair, "$", "$$")) // compose would put a variable in its place
	}
	replica := map[string]any{"environment": env}
	override, err := json.Marshal(map[string]any{"services": map[string]any{API1: replica, API2: replica}})
	if err != nil {
		return err
	}
	return os.WriteFile(d.overridePath(), override, 0o600)
}

func (d *composeDriver) down(ctx context.Context) error {
	if err := d.run(ctx, "down", "--remove-orphans", "--volumes", "--timeout", stopSeconds); err != nil {
		return err
	}
	_ = docker(ctx, "image", "rm", "--force", d.image(), d.toolsImage()) // absent after an aborted start
	return d.pruneImages(ctx)
}

func (d *composeDriver) logs(ctx context.Context, out io.Writer, names []string, follow bool) error {
	args := []string{"logs", "--no-color"}
	if follow {
		args = append(args, "--follow")
	}
	cmd, err := d.compose(ctx, append(args, names...)...)
	if err != nil {
		return err
	}
	return show(ctx, cmd, out)
}
