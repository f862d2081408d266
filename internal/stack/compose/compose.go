// Package compose runs the services of a stack as containers, with docker compose.
package compose

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	"github.com/oncepay/oncepay/internal/stack/deployment"
	"github.com/oncepay/oncepay/internal/stack/topology"
)

const (
	// composeTimeout bounds one run of docker compose; the slowest part is the wait for
	// healthchecks.
	composeTimeout = 3 * time.Minute

	// lookInterval is how often containers are looked at, which takes a command of its own.
	lookInterval = 250 * time.Millisecond
)

// portVariables are how docker-compose.yml takes the published ports.
var portVariables = map[string]string{
	topology.Proxy: "PROXY_PORT", topology.Postgres: "POSTGRES_PORT", topology.Redis: "REDIS_PORT", topology.PSP: "PSPSIM_PORT", topology.Mail: "MAIL_PORT",
	topology.API1: "API_1_PORT", topology.API2: "API_2_PORT", topology.Nginx: "NGINX_PORT",
}

// networkService is the one that publishes all ports.
const networkService = "network"

// Driver runs the services of a deployment.
type Driver struct{ *deployment.Deployment }

// project is the name that marks our containers: one per folder, so that two checkouts don't meet.
func (d *Driver) project() string {
	hash := sha256.Sum256([]byte(d.Dir))
	return "oncepay-" + hex.EncodeToString(hash[:4])
}

func (d *Driver) image() string { return d.project() + ":local" }

// toolsImage has the provider simulator and the fault proxy.
func (d *Driver) toolsImage() string { return d.project() + "-tools:local" }

func (d *Driver) overridePath() string { return filepath.Join(d.Dir, "compose.override.json") }

// run runs docker compose on our project.
func (d *Driver) run(ctx context.Context, program []string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, composeTimeout)
	defer cancel()
	cmd := d.command(ctx, program, args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), errors.Join(err, ctx.Err()), out)
	}
	return nil
}

func (d *Driver) command(ctx context.Context, program []string, args ...string) *exec.Cmd {
	all := append(slices.Clone(program), "--project-name", d.project(), "--project-directory", d.Root,
		"--file", filepath.Join(d.Root, "docker-compose.yml"))
	if localserver.IsFile(d.overridePath()) {
		all = append(all, "--file", d.overridePath())
	}
	all = append(all, args...)
	cmd := exec.CommandContext(ctx, all[0], all[1:]...)
	cmd.Env = append(os.Environ(), "ONCEPAY_IMAGE="+d.image(), "ONCEPAY_TOOLS_IMAGE="+d.toolsImage())
	for variable, name := range d.State.Data.Images {
		cmd.Env = append(cmd.Env, variable+"="+name)
	}
	for name, variable := range portVariables {
		cmd.Env = append(cmd.Env, variable+"="+strconv.Itoa(d.Port(name)))
		if ops := d.OpsPort(name); ops != 0 {
			cmd.Env = append(cmd.Env, strings.Replace(variable, "_PORT", "_OPS_PORT", 1)+"="+strconv.Itoa(ops))
		}
	}
	// Ctrl-C reaches compose as an interrupt, so that it leaves no half-made container.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = deployment.StopGrace
	return cmd
}

// Down removes the containers, the image and, unless keepData is set, the volumes.
func (d *Driver) Down(ctx context.Context, keepData bool) error {
	program, err := findCompose(ctx)
	if err != nil {
		return err
	}
	args := []string{"down", "--remove-orphans", "--timeout", strconv.Itoa(int(deployment.StopGrace.Seconds()))}
	if !keepData {
		args = append(args, "--volumes")
	}
	if err := d.run(ctx, program, args...); err != nil {
		return err
	}
	_ = docker(ctx, "image", "rm", "--force", d.image(), d.toolsImage()) // absent after an aborted start
	return d.pruneImages(ctx)
}

// Logs writes to out what services have printed, and goes on until ctx ends when follow is set.
func (d *Driver) Logs(ctx context.Context, out io.Writer, services []string, follow bool) error {
	program, err := findCompose(ctx)
	if err != nil {
		return err
	}
	args := []string{"logs", "--no-color"}
	if follow {
		args = append(args, "--follow")
	}
	cmd := d.command(ctx, program, append(args, services...)...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("docker compose logs: %w", err)
	}
	return nil
}
