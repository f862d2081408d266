package testenv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"

	"github.com/oncepay/oncepay/internal/localserver"
)

const (
	// Labels of our containers: which host and process they belong to.
	labelHost = "com.github.oncepay.testenv.host"
	labelPID  = "com.github.oncepay.testenv.pid"

	// staleAge is when a container of another host's tests is taken for forgotten; no test binary
	// runs that long.
	staleAge = time.Hour

	// stopTimeout bounds a container's orderly stop before it is killed.
	stopTimeout = 10 * time.Second
)

// docker runs servers in containers.
type docker struct {
	provider                  *testcontainers.DockerProvider
	postgresImage, redisImage string
}

var _ backend = (*docker)(nil)

// newDocker returns the backend when an engine answers and has both images or can pull them.
func newDocker(ctx context.Context) (backend, error) {
	if err := configureTestcontainers(); err != nil {
		return nil, err
	}
	probe, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err == nil {
		_, err = probe.Ping(ctx, client.PingOptions{})
		err = errors.Join(err, probe.Close())
	}
	if err != nil {
		return nil, fmt.Errorf("no Docker engine answers: %w", err)
	}
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return nil, fmt.Errorf("connect to the Docker engine: %w", err)
	}
	d := &docker{provider: provider}
	var postgresErr, redisErr error
	d.postgresImage, postgresErr = d.findImage(ctx, os.Getenv("POSTGRES_IMAGE"), "postgres:17.6", "oncepay-airgap/postgres:17")
	d.redisImage, redisErr = d.findImage(ctx, os.Getenv("REDIS_IMAGE"), "redis:8.2.1", "oncepay-airgap/redis:8")
	if err := errors.Join(postgresErr, redisErr); err != nil {
		return nil, errors.Join(err, provider.Close())
	}
	d.removeStale(ctx)
	return d, nil
}

// configureTestcontainers sets what testcontainers-go reads from the environment. Its helper
// container Ryuk would have to be pulled and run privileged; we label and remove containers
// ourselves. Its guess of the engine's host is wrong on machines that look like a container without
// being the engine's neighbour; who does run inside one sets TESTCONTAINERS_HOST_OVERRIDE.
func configureTestcontainers() error {
	log.SetDefault(log.NewNoopLogger())
	err := os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
	if host := os.Getenv("DOCKER_HOST"); host == "" || strings.HasPrefix(host, "unix:") {
		err = errors.Join(err, os.Setenv("TESTCONTAINERS_HOST_OVERRIDE", cmp.Or(os.Getenv("TESTCONTAINERS_HOST_OVERRIDE"), "127.0.0.1")))
	}
	return err
}

// findImage returns the chosen image, or the first of the others that is here, or the first that a
// registry has.
func (d *docker) findImage(ctx context.Context, chosen string, others ...string) (string, error) {
	candidates := others
	if chosen != "" {
		candidates = []string{chosen}
	}
	for _, image := range candidates {
		if _, err := d.provider.Client().ImageInspect(ctx, image); err == nil {
			return image, nil
		}
	}
	_, err := d.provider.Client().DistributionInspect(ctx, candidates[0], client.DistributionInspectOptions{})
	if err != nil {
		return "", fmt.Errorf("none of the images %s is here, and the registry: %w", strings.Join(candidates, ", "), err)
	}
	return candidates[0], nil
}

// removeStale removes the containers of tests that were killed. It ignores errors: what is left
// does no harm.
func (d *docker) removeStale(ctx context.Context) {
	list, err := d.provider.Client().ContainerList(ctx, client.ContainerListOptions{
		All: true, Filters: client.Filters{}.Add("label", labelHost),
	})
	if err != nil {
		return
	}
	host, _ := os.Hostname()
	for _, c := range list.Items {
		orphan := c.Labels[labelHost] == host && processGone(c.Labels[labelPID])
		if orphan || time.Since(time.Unix(c.Created, 0)) > staleAge {
			_, _ = d.provider.Client().ContainerRemove(ctx, c.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		}
	}
}

func (d *docker) name() string { return "docker" }
func (d *docker) close() error { return d.provider.Close() }

func (d *docker) startPostgres(ctx context.Context) (instance, error) {
	const name = "oncepay" // database, owner and password, as localserver.PostgresURL has them
	return d.run(ctx, "5432/tcp", testcontainers.ContainerRequest{
		Image: d.postgresImage,
		Env:   map[string]string{"POSTGRES_USER": name, "POSTGRES_PASSWORD": name, "POSTGRES_DB": name},
		Cmd: []string{
			"postgres", "-c", "listen_addresses=*", "-c", "max_connections=200",
			"-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off",
		},
	}, localserver.PostgresURL, localserver.PingPostgres)
}

func (d *docker) startRedis(ctx context.Context, settings ...string) (instance, error) {
	return d.run(ctx, "6379/tcp", testcontainers.ContainerRequest{
		Image: d.redisImage,
		Cmd: append([]string{
			"redis-server", "--bind", "0.0.0.0", "--save", "", "--appendonly", "no", "--databases", strconv.Itoa(redisDatabases), "--protected-mode", "no",
		}, settings...),
	}, localserver.RedisURL, localserver.PingRedis)
}
