package testenv

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/wait"
)

// dockerInstance is a server in a container.
type dockerInstance struct {
	client    client.APIClient
	container testcontainers.Container
	address   string
	port      *localserver.Port // held while the container is stopped, too
	toURL     func(addr string) string
	ping      func(ctx context.Context, addr string) error
}

var _ instance = (*dockerInstance)(nil)

// run starts a container with one published port, chosen by us so that it stays the same over a
// stop, and waits for the server.
func (d *docker) run(ctx context.Context, port string, req testcontainers.ContainerRequest, toURL func(string) string,
	ping func(ctx context.Context, addr string) error,
) (instance, error) {
	engine, err := d.provider.DaemonHost(ctx)
	if err != nil {
		return nil, fmt.Errorf("find the Docker engine's address: %w", err)
	}
	published, err := localserver.HoldPort(0)
	if err != nil {
		return nil, err
	}
	hostPort := strconv.Itoa(published.Number)
	host, _ := os.Hostname()
	req.Labels = map[string]string{labelHost: host, labelPID: strconv.Itoa(os.Getpid())}
	req.ExposedPorts = []string{port}
	req.HostConfigModifier = func(config *container.HostConfig) {
		config.PortBindings = network.PortMap{
			network.MustParsePort(port): {{HostIP: publishAt(engine), HostPort: hostPort}},
		}
	}
	c, err := d.provider.RunContainer(ctx, req)
	if err != nil {
		published.Release()
		err = fmt.Errorf("start a container of %s: %w", req.Image, err)
		return nil, errors.Join(err, testcontainers.TerminateContainer(c))
	}
	i := &dockerInstance{
		client: d.provider.Client(), container: c, address: net.JoinHostPort(engine, hostPort), port: published, toURL: toURL, ping: ping,
	}
	if err := i.awaitReady(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("wait for a container of %s: %w", req.Image, err), i.remove())
	}
	return i, nil
}

// publishAt returns the engine's address to publish ports at: loopback where that reaches the
// engine.
func publishAt(engine string) netip.Addr {
	if engine == "127.0.0.1" || engine == "localhost" {
		return netip.MustParseAddr("127.0.0.1")
	}
	return netip.IPv4Unspecified()
}

func (i *dockerInstance) addr() string { return i.address }
func (i *dockerInstance) url() string  { return i.toURL(i.address) }

func (i *dockerInstance) stop(ctx context.Context) error {
	timeout := stopTimeout
	return i.container.Stop(ctx, &timeout)
}

func (i *dockerInstance) start(ctx context.Context) error {
	if err := i.container.Start(ctx); err != nil {
		return err
	}
	return i.awaitReady(ctx)
}

// awaitReady waits until the server in the running container answers.
func (i *dockerInstance) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	return wait.Until(ctx, localserver.PollInterval, func(ctx context.Context) error { return i.ping(ctx, i.address) })
}

// pause tries again: on a busy machine the kernel may not have frozen every process by the time
// that the engine looks.
func (i *dockerInstance) pause(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	return wait.Until(ctx, localserver.PollInterval, func(ctx context.Context) error {
		_, err := i.client.ContainerPause(ctx, i.container.GetContainerID(), client.ContainerPauseOptions{})
		return err
	})
}

func (i *dockerInstance) resume(ctx context.Context) error {
	_, err := i.client.ContainerUnpause(ctx, i.container.GetContainerID(), client.ContainerUnpauseOptions{})
	return err
}

func (i *dockerInstance) remove() error {
	i.port.Release()
	_, err := i.client.ContainerRemove(context.Background(), i.container.GetContainerID(),
		client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	return err
}
