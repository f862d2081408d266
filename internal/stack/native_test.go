package stack

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testTimeout bounds every wait of a test; a server's start takes a second, ten on a loaded
// machine.
const testTimeout = 60 * time.Second

func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

// stackOf is one in which nothing runs, at an offset that is chosen here.
func stackOf(t *testing.T, of Topology) *Stack {
	t.Helper()
	s := newStack(t, Options{})
	of.Offset = s.Offset
	require.NoError(t, s.update(func(data *state) { data.Driver, data.Topology = Native, of }))
	return s
}

// newDriver is of a stack in which nothing runs yet. It is taken down with the test.
func newDriver(t *testing.T, of Topology) *nativeDriver {
	t.Helper()
	d := &nativeDriver{stackOf(t, of)}
	require.NoError(t, os.MkdirAll(filepath.Dir(d.logPath("any")), 0o755))
	t.Cleanup(func() { require.NoError(t, d.down(context.WithoutCancel(t.Context()))) })
	return d
}

// probing asks a service whether it is ready.
func probing(d *nativeDriver, name string) func(context.Context) error {
	return func(ctx context.Context) error { return d.probe(ctx, name) }
}

// allServices are those that some stack has.
func allServices() (names []string) {
	for _, s := range services {
		names = append(names, s.name)
	}
	return names
}

// repoFile reads a file of the repository.
func repoFile(t testing.TB, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", path))
	require.NoError(t, err)
	return string(content)
}
