package compose

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/oncepay/oncepay/internal/stack/deployment"
	"github.com/oncepay/oncepay/internal/stack/topology"
	"github.com/oncepay/oncepay/internal/wait"
)

// container is a line of docker ps.
type container struct {
	ID      string
	State   string // running, paused, exited, …
	Status  string // "Up 3 seconds (healthy)"
	Service string
}

// containers lists our project's containers by service.
func (d *Driver) containers(ctx context.Context) (map[string]container, error) {
	ctx, cancel := context.WithTimeout(ctx, engineTimeout)
	defer cancel()
	format := `{"ID":{{json .ID}},"State":{{json .State}},"Status":{{json .Status}},"Service":{{json (.Label "com.docker.compose.service")}}}`
	out, err := exec.CommandContext(ctx, "docker", "ps", "--all", "--no-trunc", "--format", format,
		"--filter", "label=com.docker.compose.project="+d.project()).Output()
	if err != nil {
		return nil, fmt.Errorf("docker ps: %w", err)
	}
	found := map[string]container{}
	for line := range bytes.Lines(out) {
		var one container
		if err := json.Unmarshal(line, &one); err != nil {
			return nil, fmt.Errorf("docker ps: %w", err)
		}
		found[one.Service] = one
	}
	return found, nil
}

// isHealthy reports what the container's healthcheck says.
func (c container) isHealthy() bool { return strings.Contains(c.Status, "(healthy)") }

// allHealthy fails as long as a service is not.
func (d *Driver) allHealthy(ctx context.Context) error {
	containers, err := d.containers(ctx)
	if err != nil {
		return err
	}
	for _, name := range topology.Services {
		switch one := containers[name]; {
		case slices.Contains(ended, one.State):
			return wait.Stop(fmt.Errorf("%s has ended (%s); see: stack logs %s", name, one.Status, name))
		case !one.isHealthy():
			return fmt.Errorf("%s: %s; see: stack logs %s", name, one.Status, name)
		}
	}
	return nil
}

// control runs a docker command on a service's container, unless that is in one of the states in
// which there is nothing to do.
func (d *Driver) control(ctx context.Context, service string, doneIn []string, args ...string) error {
	containers, err := d.containers(ctx)
	if err != nil {
		return err
	}
	one, ok := containers[service]
	if !ok {
		return errors.New("it has no container; `stack up` makes one")
	}
	if slices.Contains(doneIn, one.State) {
		return nil
	}
	return docker(ctx, append(args, one.ID)...)
}

// ended are the states of a container without a process.
var ended = []string{"exited", "created", "dead"}

// Start starts a container that does not run.
func (d *Driver) Start(ctx context.Context, service string) error {
	return d.control(ctx, service, []string{deployment.Running, deployment.Paused}, "start")
}

// Stop ends a container in order.
func (d *Driver) Stop(ctx context.Context, service string) error {
	return d.control(ctx, service, ended, "stop", "--time", strconv.Itoa(int(deployment.StopGrace.Seconds())))
}

// Kill ends a container at once.
func (d *Driver) Kill(ctx context.Context, service string) error {
	return d.control(ctx, service, ended, "kill")
}

// Pause freezes a container.
func (d *Driver) Pause(ctx context.Context, service string) error {
	return d.control(ctx, service, []string{deployment.Paused}, "pause")
}

// Resume lets a paused container go on.
func (d *Driver) Resume(ctx context.Context, service string) error {
	return d.control(ctx, service, []string{deployment.Running}, "unpause")
}

// Conditions tells of every service whether its container runs.
func (d *Driver) Conditions(ctx context.Context) (map[string]deployment.Condition, error) {
	containers, err := d.containers(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string]deployment.Condition{}
	for _, name := range topology.Services {
		one := containers[name]
		state := deployment.Condition{State: deployment.Stopped}
		if one.State == deployment.Running || one.State == deployment.Paused {
			state = deployment.Condition{State: one.State, ID: one.ID[:12]}
		}
		all[name] = state
	}
	return all, nil
}
