package stack

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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
	// composeTimeout bounds one run of docker compose; the slowest part is the wait for
	// healthchecks.
	composeTimeout = 3 * time.Minute

	// healthTimeout bounds the wait for running containers to be healthy again; their healthchecks
	// come every second.
	healthTimeout = 10 * time.Second

	// lookInterval is how often containers are looked at, which takes a command of its own.
	lookInterval = 250 * time.Millisecond
)

// portVariables are how docker-compose.yml takes the published ports.
var portVariables = map[string]string{
	Proxy: "PROXY_PORT", Postgres: "POSTGRES_PORT", Redis: "REDIS_PORT", PSP: "PSPSIM_PORT",
	API1: "API_1_PORT", API2: "API_2_PORT", Nginx: "NGINX_PORT",
}

// networkService is the one that publishes all ports.
const networkService = "network"

// compose runs the services as containers.
type compose struct{ *Stack }

// project is the name that marks our containers: one per folder, so that two checkouts don't meet.
func (c *compose) project() string {
	hash := sha256.Sum256([]byte(c.Dir))
	return "oncepay-" + hex.EncodeToString(hash[:4])
}

func (c *compose) image() string { return c.project() + ":local" }

func (c *compose) overridePath() string { return filepath.Join(c.Dir, "compose.override.json") }

func (c *compose) up(ctx context.Context) error {
	command, err := composeCommand(ctx)
	if err != nil {
		return fmt.Errorf("%w (%w)", err, errNothingStarted)
	}
	chosen, err := chooseImages(ctx)
	if err != nil {
		return fmt.Errorf("%w (%w)", err, errNothingStarted)
	}
	if err := c.state.update(func(d *stateData) { d.Images = chosen }); err != nil {
		return err
	}
	if err := c.checkAllPorts(ctx); err != nil {
		return err
	}
	if err := c.pull(ctx, chosen); err != nil {
		return err
	}
	if err := c.buildImage(ctx); err != nil {
		return err
	}
	if err := c.writeOverride(); err != nil {
		return err
	}
	return c.watched(ctx, func(ctx context.Context) error {
		if err := c.resumeAll(ctx); err != nil {
			return err
		}
		if err := c.compose(ctx, command, "up", "--detach", "--no-build", "--remove-orphans"); err != nil {
			return err
		}
		return wait.For(ctx, localserver.ReadyTimeout, lookInterval, c.allHealthy) // compose waits for what others depend on, but not for the last ones
	})
}

// resumeAll wakes what a fault has left paused, which compose would leave so. Docker calls a
// container unhealthy from its pause to the next healthcheck, and compose gives up on those: so it
// waits for that.
func (c *compose) resumeAll(ctx context.Context) error {
	containers, err := c.containers(ctx)
	if err != nil {
		return err
	}
	for name, one := range containers {
		if one.State == paused {
			err = errors.Join(err, c.resume(ctx, name))
		}
	}
	_ = wait.For(ctx, healthTimeout, lookInterval, c.storesHealthy) // if they are not, compose will say so
	return err
}

// storesHealthy fails as long as a container that the replicas depend on runs without being
// healthy.
func (c *compose) storesHealthy(ctx context.Context) error {
	containers, err := c.containers(ctx)
	for _, name := range []string{Proxy, Postgres, Redis, PSP} {
		if one := containers[name]; one.State == running && !one.isHealthy() {
			err = errors.Join(err, fmt.Errorf("%s: %s", name, one.Status))
		}
	}
	return err
}

// checkAllPorts looks before compose does, unless the ports are published by our own containers.
func (c *compose) checkAllPorts(ctx context.Context) error {
	containers, err := c.containers(ctx)
	if err != nil || containers[networkService].State == running {
		return err
	}
	var errs []error
	for _, name := range Services {
		numbers := []int{c.port(name)}
		if ops, ok := opsPorts[name]; ok {
			numbers = append(numbers, ops+c.offset)
		}
		errs = append(errs, checkPorts(name, numbers))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w\n%w (stop what is there, or take other ports with --port-offset 1000)", err, errNothingStarted)
	}
	return nil
}

// buildImage puts static binaries that are built here into an empty image: no registry is needed
// for that. The build context is nothing but the binaries.
func (c *compose) buildImage(ctx context.Context) error {
	if err := c.build(ctx, "linux"); err != nil {
		return err
	}
	t := c.step("image", "")
	log := filepath.Join(c.Dir, "logs", "image.log")
	err := runLogged(ctx, log, []string{"docker", "build", "--tag", c.image(), "--label", "oncepay.project=" + c.project(),
		"--file", filepath.Join(c.root, "Dockerfile.prebuilt"), c.binDir()})
	if err != nil {
		return t.failed(err)
	}
	_ = c.pruneImages(ctx) // the ones that this build has replaced
	t.done(c.image())
	return nil
}

func (c *compose) pruneImages(ctx context.Context) error {
	return exec.CommandContext(ctx, "docker", "image", "prune", "--force", "--filter", "label=oncepay.project="+c.project()).Run()
}

// writeOverride sets the settings of --env for both replicas: compose can't take variables that the
// file doesn't name.
func (c *compose) writeOverride() error {
	env := make([]string, 0, len(c.state.data.Env))
	for _, pair := range c.state.data.Env {
		env = append(env, strings.ReplaceAll(pair, "$", "$$")) // compose would put a variable in its place
	}
	replica := map[string]any{"environment": env}
	override, err := json.Marshal(map[string]any{"services": map[string]any{API1: replica, API2: replica}})
	if err != nil {
		return err
	}
	return os.WriteFile(c.overridePath(), override, 0o644)
}

// compose runs docker compose on our project.
func (c *compose) compose(ctx context.Context, command []string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, composeTimeout)
	defer cancel()
	cmd := c.composeCmd(ctx, command, args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), errors.Join(err, ctx.Err()), out)
	}
	return nil
}

func (c *compose) composeCmd(ctx context.Context, command []string, args ...string) *exec.Cmd {
	all := append(slices.Clone(command), "--project-name", c.project(), "--project-directory", c.root,
		"--file", filepath.Join(c.root, "docker-compose.yml"))
	if isFile(c.overridePath()) {
		all = append(all, "--file", c.overridePath())
	}
	all = append(all, args...)
	cmd := exec.CommandContext(ctx, all[0], all[1:]...)
	cmd.Env = append(os.Environ(), "ONCEPAY_IMAGE="+c.image())
	for variable, name := range c.state.data.Images {
		cmd.Env = append(cmd.Env, variable+"="+name)
	}
	for name, variable := range portVariables {
		cmd.Env = append(cmd.Env, variable+"="+strconv.Itoa(c.port(name)))
		if ops, ok := opsPorts[name]; ok {
			cmd.Env = append(cmd.Env, strings.Replace(variable, "_PORT", "_OPS_PORT", 1)+"="+strconv.Itoa(ops+c.offset))
		}
	}
	// Ctrl-C reaches compose as an interrupt, so that it leaves no half-made container.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = stopGrace
	return cmd
}

// watched prints a line for every service that gets ready while do runs, and then the ones that
// stayed as they were.
func (c *compose) watched(ctx context.Context, do func(context.Context) error) error {
	before, err := c.containers(ctx)
	if err != nil {
		return err
	}
	shown := map[string]bool{}
	begun := c.step("compose", "up")
	defer begun.slow.Stop()
	result := make(chan error, 1)
	go func() { result <- do(ctx) }()
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	for {
		select {
		case err := <-result:
			c.showReady(ctx, begun, before, shown)
			c.showReady(ctx, begun, nil, shown)
			return err
		case <-ticker.C:
			c.showReady(ctx, begun, before, shown)
		}
	}
}

// showReady prints the services that are ready and weren't before.
func (c *compose) showReady(ctx context.Context, begun step, before map[string]container, shown map[string]bool) {
	containers, err := c.containers(ctx)
	if err != nil {
		return // compose itself will say what is wrong
	}
	for _, name := range slices.Sorted(maps.Keys(containers)) {
		one, old := containers[name], before[name]
		isOld := old.ID == one.ID && (old.isHealthy() || old.isDone()) // compose may still replace it
		isReady := one.isHealthy() || one.isDone()
		if shown[name] || isOld || !isReady {
			continue
		}
		shown[name] = true
		line := begun
		line.name, line.where = name, c.addr(name)
		switch {
		case one.isDone():
			line.where = ""
			line.done("done")
		case before == nil:
			line.done("ready (was running)")
		default:
			line.done("ready")
		}
	}
}

func (c *compose) down(ctx context.Context, keepData bool) error {
	command, err := composeCommand(ctx)
	if err != nil {
		return err
	}
	args := []string{"down", "--remove-orphans", "--timeout", strconv.Itoa(int(stopGrace.Seconds()))}
	if !keepData {
		args = append(args, "--volumes")
	}
	if err := c.compose(ctx, command, args...); err != nil {
		return err
	}
	_ = exec.CommandContext(ctx, "docker", "image", "rm", "--force", c.image()).Run() // absent after an aborted start
	return c.pruneImages(ctx)
}

func (c *compose) logs(ctx context.Context, services []string, follow bool) error {
	command, err := composeCommand(ctx)
	if err != nil {
		return err
	}
	args := []string{"logs", "--no-color"}
	if follow {
		args = append(args, "--follow")
	}
	cmd := c.composeCmd(ctx, command, append(args, services...)...)
	cmd.Stdout, cmd.Stderr = c.Out, c.Out
	if err := cmd.Run(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("docker compose logs: %w", err)
	}
	return nil
}
