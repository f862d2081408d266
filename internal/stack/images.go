package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/oncepay/oncepay/internal/localserver"
)

const (
	// engineTimeout bounds the question whether a Docker engine is there: a local socket answers at
	// once or never.
	engineTimeout = 5 * time.Second

	// registryTimeout bounds the question whether an image can be pulled; behind a firewall that
	// drops packets it would take minutes.
	registryTimeout = 8 * time.Second
)

var images = []localserver.Image{
	localserver.Postgres.Image,
	localserver.Redis.Image,
	{Variable: "NGINX_IMAGE", Official: "nginx:1.26.3", Airgap: "oncepay-airgap/nginx:1.26"},
}

// composeOrNative is the driver that suits this machine, with the reason: whether a Docker engine
// answers and has or gets the images.
func composeOrNative(ctx context.Context) (driver, why string) {
	chosen, err := chooseImages(ctx)
	if err != nil {
		return Native, err.Error()
	}
	if slices.ContainsFunc(images, func(i localserver.Image) bool { return chosen[i.Variable] == i.Airgap }) {
		return Compose, "a Docker engine answers; no registry does, so the images are the stand-ins of scripts/airgap-images.sh"
	}
	return Compose, "a Docker engine answers and the images are at hand"
}

// findCompose returns how compose is called here: the plugin or the old program.
func findCompose(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, engineTimeout)
	defer cancel()
	if _, err := exec.LookPath("docker"); err != nil {
		return nil, errors.New("there is no docker command")
	}
	if err := exec.CommandContext(ctx, "docker", "version", "--format", "{{.Server.Version}}").Run(); err != nil {
		return nil, errors.New("no Docker engine answers")
	}
	if exec.CommandContext(ctx, "docker", "compose", "version").Run() == nil {
		return []string{"docker", "compose"}, nil
	}
	if _, err := exec.LookPath("docker-compose"); err == nil {
		return []string{"docker-compose"}, nil
	}
	return nil, errors.New("a Docker engine answers, but there is neither docker compose nor docker-compose")
}

// chooseImages decides on every image, if there is a compose to use them: the one of the
// environment, the official one if it is here or can be pulled, or the stand-in.
func chooseImages(ctx context.Context) (map[string]string, error) {
	if _, err := findCompose(ctx); err != nil {
		return nil, err
	}
	chosen := map[string]string{}
	dead := false // the registry is asked no more after the first failure
	reachable := func(name string) bool {
		ctx, cancel := context.WithTimeout(ctx, registryTimeout)
		defer cancel()
		dead = dead || exec.CommandContext(ctx, "docker", "manifest", "inspect", name).Run() != nil
		return !dead
	}
	for _, i := range images {
		names := []string{i.Official, i.Airgap}
		if configured := os.Getenv(i.Variable); configured != "" {
			names = []string{configured}
		}
		at := slices.IndexFunc(names, func(name string) bool { return isLocal(ctx, name) || name != i.Airgap && reachable(name) })
		if at < 0 {
			return nil, fmt.Errorf("the image %s is not here and cannot be pulled; scripts/airgap-images.sh makes a stand-in", names[0])
		}
		chosen[i.Variable] = names[at]
	}
	return chosen, nil
}

func isLocal(ctx context.Context, name string) bool {
	return exec.CommandContext(ctx, "docker", "image", "inspect", name).Run() == nil
}
