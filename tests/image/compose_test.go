package image_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/internal/stack/stacktest"
)

// TestCompose_UpMendsALostNetwork: one container holds the network of all. When it ends, or starts
// again, the others are left in a network that is gone.
func TestCompose_UpMendsALostNetwork(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s := stacktest.Up(ctx, t, stack.Options{Dir: ".stack-image", Driver: stack.Compose, Out: io.Discard})
	published := s.Addr(stack.Proxy)[strings.LastIndex(s.Addr(stack.Proxy), ":")+1:]
	network, err := docker(ctx, "ps", "--quiet", "--filter", "publish="+published)
	require.NoError(t, err, network)
	for _, command := range []string{"kill", "restart"} {
		said, err := docker(ctx, command, strings.TrimSpace(network))
		require.NoError(t, err, said)
		require.NoError(t, s.Up(ctx), command)
		services, _, err := s.Status(ctx)
		require.NoError(t, err, command)
		for _, service := range services {
			require.Equal(t, "ready", service.State, "%s after %s: %s", service.Name, command, service.Why)
		}
	}
}
