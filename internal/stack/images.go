package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
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

// composeAvailable reports whether a Docker engine answers and has or gets the images, with the reason.
func composeAvailable(ctx context.Context) (ok bool, why string) {
	chosen, err := chooseImages(ctx)
	if err != nil {
		return false, err.Error()
	}
	for _, i := range images {
		if chosen[i.Variable] == i.Airgap {
			return true, "a Docker engine answers; no registry does, so the images are the stand-ins of scripts/airgap-images.sh"
		}
	}
	return true, "a Docker engine answers and the images are at hand"
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
	reachable := registryCheck(ctx)
	for _, i := range images {
		configured := os.Getenv(i.Variable)
		switch {
		case configured != "":
			chosen[i.Variable] = configured
			if !isLocal(ctx, configured) && !reachable(configured) {
				return nil, fmt.Errorf("the image %s (%s) is not here and cannot be pulled", configured, i.Variable)
			}
		case isLocal(ctx, i.Official) || reachable(i.Official):
			chosen[i.Variable] = i.Official
		case isLocal(ctx, i.Airgap):
			chosen[i.Variable] = i.Airgap
		default:
			return nil, fmt.Errorf("the image %s is not here and cannot be pulled; scripts/airgap-images.sh makes a stand-in", i.Official)
		}
	}
	return chosen, nil
}

func isLocal(ctx context.Context, name string) bool {
	return exec.CommandContext(ctx, "docker", "image", "inspect", name).Run() == nil
}

// registryCheck returns a function that asks the registry for an image, and no more after the first
// failure.
func registryCheck(ctx context.Context) func(name string) bool {
	dead := false
	return func(name string) bool {
		ctx, cancel := context.WithTimeout(ctx, registryTimeout)
		defer cancel()
		dead = dead || exec.CommandContext(ctx, "docker", "manifest", "inspect", name).Run() != nil
		return !dead
	}
}
