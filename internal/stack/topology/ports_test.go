package topology_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/stack/stacktest"
	"github.com/oncepay/oncepay/internal/stack/topology"
)

func TestPorts_AreDistinct(t *testing.T) {
	t.Parallel()
	owner := map[int]string{}
	last := topology.Topology{Offset: topology.MaxOffset}
	for _, name := range stacktest.AllServices() {
		for _, port := range last.Ports(name) {
			require.Empty(t, owner[port], "port %d of %s", port, name)
			require.LessOrEqual(t, port, 65535)
			owner[port] = name
		}
	}
}

func TestEdge_IsFoundInEitherOrder(t *testing.T) {
	t.Parallel()
	var stack topology.Topology
	there, err := stack.FindEdges(topology.API1, topology.Redis)
	require.NoError(t, err)
	back, err := stack.FindEdges(topology.Redis, topology.API1)
	require.NoError(t, err)
	require.Equal(t, there, back)
	_, err = stack.FindEdges(topology.API1, topology.API2)
	require.ErrorContains(t, err, "don't talk to each other")
	both, err := stack.FindEdges(topology.Postgres, topology.PostgresStandby)
	require.NoError(t, err)
	require.Len(t, both, 2, "whichever is the standby")
}

func TestEdge_ToAReplicatedRedisIsPastTheProxy(t *testing.T) {
	t.Parallel()
	stack := topology.Topology{Redis: topology.Sentinel}
	_, err := stack.FindEdges(topology.Redis, topology.API1)
	require.ErrorContains(t, err, "past the switchboard")
	_, err = stack.FindEdges(topology.API1, topology.Postgres)
	require.NoError(t, err)
}

func TestEdge_IsNotCutWithoutTheProxy(t *testing.T) {
	t.Parallel()
	stack := topology.Topology{Direct: true}
	_, err := stack.FindEdges(topology.API1, topology.Redis)
	require.ErrorContains(t, err, "without --direct")
	require.Equal(t, stack.Addr(topology.Redis), stack.Via(topology.API1, topology.Redis))
	require.NotContains(t, stack.Services(), topology.Proxy)
}

// docker-compose.yml and nginx.conf write the ports out, so that they can be used without `stack`.
func TestEdges_AreThoseOfTheFiles(t *testing.T) {
	t.Parallel()
	compose, nginx := stacktest.RepoFile(t, "docker-compose.yml"), stacktest.RepoFile(t, "deploy/nginx/nginx.conf")
	var stack topology.Topology
	for _, e := range topology.Edges {
		if e.From == topology.PostgresStandby || e.To == topology.PostgresStandby {
			continue // native only
		}
		file, times := compose, 1
		if e.From == topology.Nginx {
			file, times = nginx, 2 // once more for when both are out
		}
		require.Equal(t, times, strings.Count(file, stack.Via(e.From, e.To)), "%s", e)
	}
}
