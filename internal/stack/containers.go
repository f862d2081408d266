package stack

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

	"github.com/oncepay/oncepay/internal/wait"
)

// container is a line of docker ps.
type container struct {
	ID      string
	State   string // running, paused, exited, …
	Status  string // "Up 3 seconds (healthy)"
	Service string
}

// isHealthy reports what the container's healthcheck says.
func (c container) isHealthy() bool { return strings.Contains(c.Status, "(healthy)") }

// containers lists our project's containers by service.
func (d *composeDriver) containers(ctx context.Context) (map[string]container, error) {
	ctx, cancel := context.WithTimeout(ctx, engineTimeout)
	defer cancel()
	format := `{"ID":{{json .ID}},"State":{{json .State}},"Status":{{json .Status}},"Service":{{json (.Label "com.docker.compose.service")}}}`
	out, err := exec.CommandContext(ctx, "docker", "ps", "--all", "--no-trunc", "--format", format,
		"--filter", "label=com.docker.compose.project="+d.project()).Output()
	found := map[string]container{}
	for line := range bytes.Lines(out) {
		var one container
		err = errors.Join(err, json.Unmarshal(line, &one))
		found[one.Service] = one
	}
	if err != nil {
		return nil, fmt.Errorf("docker ps: %w", err)
	}
	return found, nil
}

// allHealthy fails as long as a service is not.
func (d *composeDriver) allHealthy(ctx context.Context) error {
	containers, err := d.containers(ctx)
	if err != nil {
		return err
	}
	for _, name := range d.Services() {
		switch one := containers[name]; {
		case slices.Contains(ended, one.State):
			return wait.Stop(fmt.Errorf("%s has ended (%s); see: stack logs %s", name, one.Status, name))
		case !one.isHealthy():
			return fmt.Errorf("%s: %s; see: stack logs %s", name, one.Status, name)
		}
	}
	return nil
}

// resumeAll wakes what a fault has left paused, which compose would leave so. Docker calls a
// container unhealthy from its pause to the next healthcheck, and compose gives up on those that
// the replicas depend on: so it waits for that.
func (d *composeDriver) resumeAll(ctx context.Context) error {
	containers, err := d.containers(ctx)
	for name, one := range containers {
		if one.State == paused {
			err = errors.Join(err, d.control(ctx, "resume", name))
		}
	}
	_ = wait.For(ctx, healthTimeout, lookInterval, func(ctx context.Context) error { // if they are not, compose will say so
		containers, err := d.containers(ctx)
		for _, name := range []string{Proxy, Postgres, Redis, PSP, Mail} {
			if one := containers[name]; one.State == running && !one.isHealthy() {
				err = errors.Join(err, fmt.Errorf("%s: %s", name, one.Status))
			}
		}
		return err
	})
	return err
}

// ended are the states of a container without a process.
var ended = []string{"exited", "created", "dead"}

var stopSeconds = strconv.Itoa(int(stopGrace.Seconds()))

// dockerVerbs are what docker calls the switchboard's verbs, and the states of a container in which
// there is nothing to do.
var dockerVerbs = map[string]struct{ command, doneIn []string }{
	"start":  {[]string{"start"}, []string{running, paused}},
	"stop":   {[]string{"stop", "--time", stopSeconds}, ended},
	"kill":   {[]string{"kill"}, ended},
	"pause":  {[]string{"pause"}, []string{paused}},
	"resume": {[]string{"unpause"}, []string{running}},
}

func (d *composeDriver) control(ctx context.Context, verb, name string) error {
	v, ok := dockerVerbs[verb]
	if !ok {
		return errNativeOnly
	}
	containers, err := d.containers(ctx)
	if err != nil {
		return err
	}
	one, ok := containers[name]
	switch {
	case !ok:
		return errors.New("it has no container; `stack up` makes one")
	case slices.Contains(v.doneIn, one.State):
		return nil
	}
	return docker(ctx, append(slices.Clone(v.command), one.ID)...)
}

func (d *composeDriver) conditions(ctx context.Context) (map[string]condition, error) {
	containers, err := d.containers(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string]condition{}
	for _, name := range d.Services() {
		all[name] = condition{state: stopped}
		if one := containers[name]; one.State == running || one.State == paused {
			all[name] = condition{one.State, one.ID[:12]}
		}
	}
	return all, nil
}
