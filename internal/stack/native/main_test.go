package native

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/oncepay/oncepay/internal/stack/stacktest"
	"github.com/oncepay/oncepay/internal/stack/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newDriver is of a stack in which nothing runs yet. It is taken down with the test.
func newDriver(t *testing.T, of topology.Topology) *Driver {
	t.Helper()
	d := &Driver{Deployment: stacktest.Deployment(t, of)}
	require.NoError(t, d.makeDirs())
	t.Cleanup(func() { require.NoError(t, d.Down(context.WithoutCancel(t.Context()), false)) })
	return d
}
