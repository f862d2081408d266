package compose

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/stack/deployment"
	"github.com/oncepay/oncepay/internal/stack/topology"
	"github.com/oncepay/oncepay/internal/wait"
)

// healthTimeout bounds the wait for running containers to be healthy again; their healthchecks come
// every second.
const healthTimeout = 10 * time.Second

// Up starts what does not run or runs with other settings, and returns when everything is ready.
func (d *Driver) Up(ctx context.Context) error {
	chosen, err := chooseImages(ctx)
	if err != nil {
		return fmt.Errorf("%w (%w)", err, deployment.ErrNothingStarted)
	}
	if err := d.State.Update(func(data *deployment.StateData) { data.Images = chosen }); err != nil {
		return err
	}
	if err := d.checkAllPorts(ctx); err != nil {
		return err
	}
	if err := d.buildImages(ctx); err != nil {
		return err
	}
	if err := d.writeOverride(); err != nil {
		return err
	}
	begun := d.Step("compose", "up")
	if err := begun.End("ready", d.up(ctx)); err != nil {
		return err
	}
	for _, name := range topology.Services {
		d.Printf("  %-*s %-17s ready\n", d.NameWidth(), name, d.Addr(name))
	}
	return nil
}

func (d *Driver) up(ctx context.Context) error {
	if err := d.resumeAll(ctx); err != nil {
		return err
	}
	if err := d.run(ctx, "up", "--detach", "--no-build", "--remove-orphans"); err != nil {
		return err
	}
	return wait.For(ctx, localserver.ReadyTimeout, lookInterval, d.allHealthy) // compose waits for what others depend on, but not for the last ones
}

// resumeAll wakes what a fault has left paused, which compose would leave so. Docker calls a
// container unhealthy from its pause to the next healthcheck, and compose gives up on those: so it
// waits for that.
func (d *Driver) resumeAll(ctx context.Context) error {
	containers, err := d.containers(ctx)
	if err != nil {
		return err
	}
	for name, one := range containers {
		if one.State == deployment.Paused {
			err = errors.Join(err, d.Resume(ctx, name))
		}
	}
	_ = wait.For(ctx, healthTimeout, lookInterval, d.storesHealthy) // if they are not, compose will say so
	return err
}

// storesHealthy fails as long as a container that the replicas depend on runs without being
// healthy.
func (d *Driver) storesHealthy(ctx context.Context) error {
	containers, err := d.containers(ctx)
	for _, name := range []string{topology.Proxy, topology.Postgres, topology.Redis, topology.PSP, topology.Mail} {
		if one := containers[name]; one.State == deployment.Running && !one.isHealthy() {
			err = errors.Join(err, fmt.Errorf("%s: %s", name, one.Status))
		}
	}
	return err
}

// checkAllPorts looks before compose does, unless the ports are published by our own containers.
func (d *Driver) checkAllPorts(ctx context.Context) error {
	containers, err := d.containers(ctx)
	if err != nil || containers[networkService].State == deployment.Running {
		return err
	}
	var errs []error
	for _, name := range topology.Services {
		for _, port := range []int{d.Port(name), d.OpsPort(name)} {
			if err := localserver.CheckPort(port); err != nil { // 0, for none, is free
				errs = append(errs, fmt.Errorf("%s: %w", name, err))
			}
		}
	}
	return deployment.PortsTaken(errors.Join(errs...))
}

// buildImages puts static binaries that are built here into empty images: no registry is needed for
// that. The build context is nothing but the binaries.
func (d *Driver) buildImages(ctx context.Context) error {
	if err := d.Build(ctx, "CGO_ENABLED=0", "GOOS=linux"); err != nil {
		return err
	}
	t := d.Step("image", "")
	build := []string{"build", "--label", "oncepay.project=" + d.project(), "--file", filepath.Join(d.Root, "Dockerfile.prebuilt")}
	err := docker(ctx, slices.Concat(build, []string{"--tag", d.image(), d.BinDir()})...)
	if err == nil {
		err = docker(ctx, slices.Concat(build, []string{"--tag", d.toolsImage(), "--target", "tools", d.BinDir()})...)
	}
	_ = d.pruneImages(ctx) // the ones that this build has replaced
	return t.End(d.image(), err)
}

func (d *Driver) pruneImages(ctx context.Context) error {
	return docker(ctx, "image", "prune", "--force", "--filter", "label=oncepay.project="+d.project())
}

// writeOverride sets the settings of --env for both replicas: compose can't take variables that the
// file doesn't name.
func (d *Driver) writeOverride() error {
	env := make([]string, 0, len(d.State.Data.Env))
	for _, pair := range d.State.Data.Env {
		env = append(env, strings.ReplaceAll(pair, "$", "$$")) // compose would put a variable in its place
	}
	replica := map[string]any{"environment": env}
	override, err := json.Marshal(map[string]any{"services": map[string]any{topology.API1: replica, topology.API2: replica}})
	if err != nil {
		return err
	}
	return os.WriteFile(d.overridePath(), override, 0o600)
}
