package testenv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/wait"
)

const (
	// labelOwner is which host and process a container belongs to.
	labelOwner = "com.github.oncepay.testenv.owner"

	// staleAge is when a container of another host's tests is taken for forgotten; no test binary
	// runs that long.
	staleAge = time.Hour

	// localhost is where this machine's own engine publishes the ports of containers.
	localhost = "127.0.0.1"
)

// docker runs servers in containers.
type docker struct {
	*testcontainers.DockerProvider
	images map[localserver.Image]string // the chosen ones
}

// newDocker returns the backend when an engine answers and has both images or can pull them.
func newDocker(ctx context.Context) (backend, error) {
	configureTestcontainers()
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return backend{}, fmt.Errorf("connect to the Docker engine: %w", err)
	}
	d := &docker{provider, map[localserver.Image]string{}}
	for _, i := range []localserver.Image{localserver.Postgres.Image, localserver.Redis.Image} {
		if d.images[i], err = i.Choose(ctx); err != nil {
			return backend{}, errors.Join(err, d.Close())
		}
	}
	d.removeStale(ctx)
	atEnd(d.Close)
	return backend{"docker", d.start}, nil
}

// configureTestcontainers sets what testcontainers-go reads from the environment. Its helper
// container Ryuk would have to be pulled and run privileged; we label and remove containers
// ourselves. Its guess of the engine's host is wrong on machines that look like a container without
// being the engine's neighbour; who does run inside one sets TESTCONTAINERS_HOST_OVERRIDE.
func configureTestcontainers() {
	log.SetDefault(log.NewNoopLogger())
	_ = os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
	if host := os.Getenv("DOCKER_HOST"); host == "" || strings.HasPrefix(host, "unix:") {
		_ = os.Setenv("TESTCONTAINERS_HOST_OVERRIDE", cmp.Or(os.Getenv("TESTCONTAINERS_HOST_OVERRIDE"), localhost))
	}
}

// removeStale removes the containers of tests that were killed. It ignores errors: what is left
// does no harm.
func (d *docker) removeStale(ctx context.Context) {
	list, _ := d.Client().ContainerList(ctx, client.ContainerListOptions{All: true, Filters: client.Filters{}.Add("label", labelOwner)})
	for _, c := range list.Items {
		if isOrphan(c.Labels[labelOwner]) || time.Since(time.Unix(c.Created, 0)) > staleAge {
			_ = d.remove(c.ID)
		}
	}
}

func (d *docker) remove(id string) error {
	_, err := d.Client().ContainerRemove(context.Background(), id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	return err
}

// start starts a container, and waits for the server.
func (d *docker) start(ctx context.Context, kind kind, cfg localserver.Config) (*Server, error) {
	image := d.images[kind.Image]
	c, err := d.RunContainer(ctx, testcontainers.ContainerRequest{
		Image: image, Env: kind.env, Cmd: slices.Concat(kind.command, cfg.Settings),
		Labels: map[string]string{labelOwner: owner()}, ExposedPorts: []string{kind.port},
		HostConfigModifier: func(config *container.HostConfig) {
			if engine, _ := d.DaemonHost(ctx); engine == localhost { // no other machine has to reach it
				config.PortBindings = network.PortMap{network.MustParsePort(kind.port): {{HostIP: netip.MustParseAddr(localhost)}}}
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("start a container of %s: %w", image, err)
	}
	s := &Server{remove: func() error { return d.remove(c.GetContainerID()) }}
	if s.Addr, err = c.PortEndpoint(ctx, kind.port, ""); err == nil {
		err = wait.For(ctx, localserver.ReadyTimeout, localserver.PollInterval, func(ctx context.Context) error {
			return kind.Probe(ctx, s.Addr)
		})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reach a container of %s: %w", image, err), s.remove())
	}
	s.URL = kind.URL(s.Addr)
	return s, nil
}
