package stack

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/wait"
)

// askTimeout bounds the questions to an engine that may hang. A busy machine needs some seconds
// for them.
const askTimeout = 30 * time.Second

var images = []localserver.Image{
	localserver.Postgres.Image,
	localserver.Redis.Image,
	{Variable: "NGINX_IMAGE", Official: "nginx:1.26.3", Airgap: "oncepay-airgap/nginx:1.26"},
}

// composeCommand is how compose is called here: by the program, or by docker's plugin.
func composeCommand() []string {
	if _, err := exec.LookPath("docker-compose"); err == nil {
		return []string{"docker-compose"}
	}
	return []string{"docker", "compose"}
}

// chooseImages returns every image by its variable, if compose works here.
func chooseImages(ctx context.Context) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	compose := append(composeCommand(), "version")
	_, err := docker(ctx, "version")
	if err != nil || exec.CommandContext(ctx, compose[0], compose[1:]...).Run() != nil {
		return nil, errors.New("there is no Docker engine that answers, or no docker compose")
	}
	chosen := map[string]string{}
	for _, i := range images {
		image, err := i.Choose(ctx)
		if err != nil {
			return nil, err
		}
		chosen[i.Variable] = image
	}
	return chosen, nil
}

// composeDriver runs the services of a stack as containers, with docker compose.
type composeDriver struct{ *Stack }

// project is the name that marks our containers: one per folder, so that two checkouts don't meet.
func (d *composeDriver) project() string {
	return fmt.Sprintf("oncepay-%.4x", sha256.Sum256([]byte(d.Dir)))
}

// ourImages are of the service, and of the provider simulator with the fault proxy, by their
// targets in Dockerfile.prebuilt.
func (d *composeDriver) ourImages() map[string]string {
	return map[string]string{"": d.project() + ":local", "tools": d.project() + "-tools:local"}
}

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
func (d *composeDriver) compose(ctx context.Context, args ...string) *exec.Cmd {
	all := append(composeCommand(), "--project-name", d.project(), "--project-directory", d.root,
		"--file", filepath.Join(d.root, "docker-compose.yml"))
	if _, err := os.Stat(d.overridePath()); err == nil {
		all = append(all, "--file", d.overridePath())
	}
	cmd := exec.CommandContext(ctx, all[0], append(all[1:], args...)...)
	cmd.Env = append(os.Environ(), "ONCEPAY_IMAGE="+d.ourImages()[""], "ONCEPAY_TOOLS_IMAGE="+d.ourImages()["tools"])
	for variable, name := range d.state.Images {
		cmd.Env = append(cmd.Env, variable+"="+name)
	}
	for variable, port := range d.published() {
		cmd.Env = append(cmd.Env, variable+"="+strconv.Itoa(port))
	}
	// Ctrl-C reaches compose as an interrupt, so that it leaves no half-made container.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = stopGrace
	return cmd
}

// docker runs a command to its end, and returns what it printed.
func docker(ctx context.Context, args ...string) (string, error) {
	return output(exec.CommandContext(ctx, "docker", args...))
}

func (d *composeDriver) up(ctx context.Context) error {
	chosen, err := chooseImages(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", errNothingStarted, err)
	}
	if err := d.update(func(data *state) { data.Images = chosen }); err != nil {
		return err
	}
	for _, do := range []func(context.Context) error{d.resumeAll, d.stopCutOff, d.buildImages, d.writeOverride} {
		if err := do(ctx); err != nil {
			return err
		}
	}
	err = d.step("compose", "", func() (string, error) {
		_, err := output(d.compose(ctx, "up", "--detach", "--no-build", "--remove-orphans"))
		return "up", err
	})
	for _, name := range d.Services() { // compose does not wait for the last ones
		if err == nil {
			err = d.step(name, d.Addr(name), func() (string, error) { return "ready", d.await(ctx, name) })
		}
	}
	return err
}

func (d *composeDriver) await(ctx context.Context, name string) error {
	return wait.For(ctx, localserver.ReadyTimeout, localserver.PollInterval, func(ctx context.Context) error {
		err := d.probe(ctx, name)
		if all, _ := d.conditions(ctx); err != nil && all[name].State == stopped {
			err = wait.Stop(fmt.Errorf("it has ended; see: stack logs %s", name))
		}
		return err
	})
}

// resumeAll wakes what a fault has left paused. Docker calls a container unhealthy from its pause
// to its next healthcheck, and compose would give up on those that the replicas depend on.
func (d *composeDriver) resumeAll(ctx context.Context) error {
	all, err := d.conditions(ctx)
	for name, one := range all {
		if one.State != paused {
			continue
		}
		err = errors.Join(err, d.control(ctx, "resume", name))
		_ = wait.For(ctx, askTimeout, localserver.PollInterval, func(ctx context.Context) error { // if it stays so, compose says it
			health, err := docker(ctx, "inspect", "--format", "{{.State.Health.Status}}", one.ID)
			if strings.TrimSpace(health) == "unhealthy" {
				err = errors.New("it is unhealthy")
			}
			return err
		})
	}
	return err
}

// stopCutOff stops the containers if the one that holds their network has ended, or was started
// again: compose would leave them in the network that is gone.
func (d *composeDriver) stopCutOff(ctx context.Context) error {
	all, err := d.conditions(ctx)
	network, proxy := all["network"], all[Proxy]
	if err != nil || network.ID == "" || proxy.ID == "" {
		return err
	}
	started, err := docker(ctx, "inspect", "--format", "{{.State.StartedAt}}", network.ID, proxy.ID)
	if first, second, _ := strings.Cut(started, "\n"); err == nil && (network.State == stopped || first > second) {
		_, err = output(d.compose(ctx, "stop", "--timeout", stopSeconds))
	}
	return err
}

// buildImages puts static binaries that are built here into empty images: no registry is needed for
// that. The build context is nothing but the binaries.
func (d *composeDriver) buildImages(ctx context.Context) error {
	if err := d.build(ctx, "CGO_ENABLED=0", "GOOS=linux"); err != nil {
		return err
	}
	return d.step("image", "", func() (state string, err error) {
		for target, image := range d.ourImages() {
			_, failed := docker(ctx, "build", "--label", "oncepay.project="+d.project(), "--tag", image,
				"--file", filepath.Join(d.root, "Dockerfile.prebuilt"), "--target="+target, d.binDir())
			err = errors.Join(err, failed)
		}
		d.pruneImages(ctx) // the ones that this build has replaced
		return d.project(), err
	})
}

func (d *composeDriver) pruneImages(ctx context.Context) {
	_, _ = docker(ctx, "image", "prune", "--force", "--filter", "label=oncepay.project="+d.project())
}

// writeOverride sets the settings of --env for both replicas: compose can't take variables that the
// file doesn't name.
func (d *composeDriver) writeOverride(context.Context) error {
	env := make([]string, 0, len(d.state.Env))
	for _, pair := range d.state.Env {
		env = append(env, strings.ReplaceAll(pair, "$", "$$")) // compose would put a variable in its place
	}
	replica := map[string]any{"environment": env}
	override, _ := json.Marshal(map[string]any{"services": map[string]any{API1: replica, API2: replica}}) // of strings
	return os.WriteFile(d.overridePath(), override, 0o600)
}

func (d *composeDriver) down(ctx context.Context) error {
	if _, err := output(d.compose(ctx, "down", "--remove-orphans", "--volumes", "--timeout", stopSeconds)); err != nil {
		return err
	}
	for _, image := range d.ourImages() {
		_, _ = docker(ctx, "image", "rm", "--force", image) // absent after an aborted start
	}
	d.pruneImages(ctx)
	return nil
}

var stopSeconds = strconv.Itoa(int(stopGrace.Seconds()))

// dockerVerbs are what docker calls the switchboard's verbs, and the states to which they lead.
var dockerVerbs = map[string]struct{ command, to string }{
	"start":  {"start", running},
	"stop":   {"stop -t " + stopSeconds, stopped},
	"kill":   {"kill", stopped},
	"pause":  {"pause", paused},
	"resume": {"unpause", running},
}

func (d *composeDriver) control(ctx context.Context, verb, name string) error {
	v, ok := dockerVerbs[verb]
	if !ok {
		return errNativeOnly
	}
	all, err := d.conditions(ctx)
	if err == nil && all[name].State != v.to {
		_, err = docker(ctx, append(strings.Fields(v.command), all[name].ID)...)
	}
	return err
}

func (d *composeDriver) conditions(ctx context.Context) (map[string]ServiceStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	out, err := docker(ctx, "ps", "--all", "--filter", "label=com.docker.compose.project="+d.project(),
		"--format", `{{.Label "com.docker.compose.service"}} {{.State}} {{.ID}}`)
	all := map[string]ServiceStatus{}
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); err == nil && len(fields) == 3 {
			one := ServiceStatus{State: fields[1], ID: fields[2]}
			if one.State != running && one.State != paused { // exited, created, …
				one.State = stopped
			}
			all[fields[0]] = one
		}
	}
	return all, err
}

func (d *composeDriver) logs(ctx context.Context, names []string, follow bool) *exec.Cmd {
	args := []string{"logs", "--no-color"}
	if follow {
		args = append(args, "--follow")
	}
	return d.compose(ctx, append(args, names...)...)
}
