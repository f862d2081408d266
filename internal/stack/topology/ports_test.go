package topology_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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

// Scenarios that need another stack start it beside the one that runs.
func TestPorts_OfAScenariosOwnStackAreNotTheRunningOnes(t *testing.T) {
	t.Parallel()
	scenarios, err := filepath.Glob("../../../scripts/scenarios/*.sh")
	require.NoError(t, err)
	distance := regexp.MustCompile(`PORT_OFFSET="\$\(\(\$\{PORT_OFFSET:-\d+\} \+ (\d+)\)\)"`)
	found := 0
	for _, path := range scenarios {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, match := range distance.FindAllStringSubmatch(string(text), -1) {
			found++
			offset, err := strconv.Atoi(match[1])
			require.NoError(t, err)
			running, further := topology.Topology{}, topology.Topology{Offset: offset}
			for _, name := range stacktest.AllServices() {
				for _, other := range stacktest.AllServices() {
					require.Empty(t, common(running.Ports(name), further.Ports(other)), "%s: %s and the other %s", path, name, other)
				}
			}
		}
	}
	require.GreaterOrEqual(t, found, 3)
}

// common returns the ports that are in both lists.
func common(a, b []int) []int {
	return slices.DeleteFunc(slices.Clone(a), func(port int) bool { return !slices.Contains(b, port) })
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
			file, times = nginx, 6 // in three upstreams, and once more in each for when both are out
		}
		require.Equal(t, times, strings.Count(file, stack.Via(e.From, e.To)), "%s", e)
	}
}
