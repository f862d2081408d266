// Package stacktest makes stacks for tests: each in a folder of its own, at ports that are free. It
// is imported by tests only.
package stacktest

import (
	"context"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/stack/deployment"
	"github.com/oncepay/oncepay/internal/stack/topology"
)

// Timeout bounds every wait of a test; a server's start takes a second, ten on a loaded machine.
const Timeout = 60 * time.Second

// Context ends with the test, and after [Timeout].
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Timeout)
	t.Cleanup(cancel)
	return ctx
}

// AllServices are those that some stack has.
func AllServices() []string {
	return slices.Concat(topology.Services, topology.SentinelServices, []string{topology.PostgresStandby, topology.Console})
}

// Offset is a port offset at which every port is held until the test ends.
func Offset(t testing.TB) (offset int) {
	t.Helper()
	var held []*localserver.Port
	release := func() {
		for _, port := range held {
			port.Release()
		}
	}
	t.Cleanup(func() { release() })
	require.Eventually(t, func() (ok bool) {
		release()
		offset = rand.IntN(topology.MaxOffset)
		held, ok = holdAll(&topology.Topology{Offset: offset})
		return ok
	}, Timeout, localserver.PollInterval)
	return offset
}

func holdAll(stack *topology.Topology) (held []*localserver.Port, ok bool) {
	for _, name := range AllServices() {
		for _, number := range stack.Ports(name) {
			port, err := localserver.HoldPort(number)
			if err != nil {
				return held, false
			}
			held = append(held, port)
		}
	}
	return held, true
}

// Deployment is one in which nothing runs. Its offset is chosen here.
func Deployment(t testing.TB, of topology.Topology) *deployment.Deployment {
	t.Helper()
	d, err := deployment.New(t.TempDir(), io.Discard)
	require.NoError(t, err)
	of.Offset = Offset(t)
	require.NoError(t, d.State.Update(func(data *deployment.StateData) { data.Topology = of }))
	return d
}

// RepoFile reads a file of the repository.
func RepoFile(t testing.TB, path string) string {
	t.Helper()
	d, err := deployment.New(t.TempDir(), io.Discard)
	require.NoError(t, err)
	content, err := os.ReadFile(filepath.Join(d.Root, path))
	require.NoError(t, err)
	return string(content)
}
