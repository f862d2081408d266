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
	"strconv"
	"strings"
	"time"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/stack/deployment"
	"github.com/oncepay/oncepay/internal/stack/topology"
)

const (
	// composeTimeout bounds one run of docker compose; the slowest part is the pull of images that
	// are not here yet, each of some 150 MB.
	composeTimeout = 10 * time.Minute

	// lookInterval is how often containers are looked at, which takes a command of its own.
	lookInterval = 250 * time.Millisecond
)

// portVariable is how docker-compose.yml takes the published port of a service, such as API_1_PORT.
func portVariable(service, kind string) string {
	return strings.ToUpper(strings.ReplaceAll(service, "-", "_")) + kind
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
func (d *Driver) run(ctx context.Context, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, composeTimeout)
	defer cancel()
	cmd, err := d.command(ctx, args...)
	if err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), errors.Join(err, ctx.Err()), out)
	}
	return nil
}

func (d *Driver) command(ctx context.Context, args ...string) (*exec.Cmd, error) {
	all, err := findCompose(ctx)
	if err != nil {
		return nil, err
	}
	all = append(all, "--project-name", d.project(), "--project-directory", d.Root, "--file", filepath.Join(d.Root, "docker-compose.yml"))
	if localserver.IsFile(d.overridePath()) {
		all = append(all, "--file", d.overridePath())
	}
	all = append(all, args...)
	cmd := exec.CommandContext(ctx, all[0], all[1:]...)
	cmd.Env = append(os.Environ(), "ONCEPAY_IMAGE="+d.image(), "ONCEPAY_TOOLS_IMAGE="+d.toolsImage())
	for variable, name := range d.State.Data.Images {
		cmd.Env = append(cmd.Env, variable+"="+name)
	}
	for _, name := range topology.Services {
		cmd.Env = append(cmd.Env, portVariable(name, "_PORT")+"="+strconv.Itoa(d.Port(name)))
		if ops := d.OpsPort(name); ops != 0 {
			cmd.Env = append(cmd.Env, portVariable(name, "_OPS_PORT")+"="+strconv.Itoa(ops))
		}
	}
	// Ctrl-C reaches compose as an interrupt, so that it leaves no half-made container.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = deployment.StopGrace
	return cmd, nil
}

// Down removes the containers, the image and, unless keepData is set, the volumes.
func (d *Driver) Down(ctx context.Context, keepData bool) error {
	args := []string{"down", "--remove-orphans", "--timeout", strconv.Itoa(int(deployment.StopGrace.Seconds()))}
	if !keepData {
		args = append(args, "--volumes")
	}
	if err := d.run(ctx, args...); err != nil {
		return err
	}
	_ = docker(ctx, "image", "rm", "--force", d.image(), d.toolsImage()) // absent after an aborted start
	return d.pruneImages(ctx)
}

// Logs writes to out what services have printed, and goes on until ctx ends when follow is set.
func (d *Driver) Logs(ctx context.Context, out io.Writer, services []string, follow bool) error {
	args := []string{"logs", "--no-color"}
	if follow {
		args = append(args, "--follow")
	}
	cmd, err := d.command(ctx, append(args, services...)...)
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("docker compose logs: %w", err)
	}
	return nil
}
