package stack

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPorts_AreDistinct(t *testing.T) {
	t.Parallel()
	owner := map[int]string{}
	last := Topology{Offset: maxOffset}
	for _, name := range allServices() {
		for _, port := range last.Ports(name) {
			require.Empty(t, owner[port], "port %d of %s", port, name)
			require.LessOrEqual(t, port, 65535)
			owner[port] = name
		}
	}
}

// A hint says which offset has room for a stack beside one without.
func TestPorts_OfTheHintAreFree(t *testing.T) {
	t.Parallel()
	var first Topology
	second := Topology{Offset: 100}
	for _, name := range allServices() {
		for _, other := range allServices() {
			for _, port := range first.Ports(name) {
				require.NotContains(t, second.Ports(other), port)
			}
		}
	}
}

// Scenarios that need another stack start it beside the one that runs.
func TestPorts_OfAScenariosOwnStackAreNotTheRunningOnes(t *testing.T) {
	t.Parallel()
	scenarios, err := filepath.Glob("../../scripts/scenarios/*.sh")
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
			running, further := Topology{}, Topology{Offset: offset}
			for _, name := range allServices() {
				for _, other := range allServices() {
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
	var stack Topology
	there, err := stack.findEdges(API1, Redis)
	require.NoError(t, err)
	back, err := stack.findEdges(Redis, API1)
	require.NoError(t, err)
	require.Equal(t, there, back)
	_, err = stack.findEdges(API1, API2)
	require.ErrorContains(t, err, "don't talk to each other")
	both, err := stack.findEdges(Postgres, PostgresStandby)
	require.NoError(t, err)
	require.Len(t, both, 2, "whichever is the standby")
}

func TestEdge_ToAReplicatedRedisIsPastTheProxy(t *testing.T) {
	t.Parallel()
	stack := Topology{Redis: Sentinel}
	_, err := stack.findEdges(Redis, API1)
	require.ErrorContains(t, err, "past the switchboard")
	_, err = stack.findEdges(API1, Postgres)
	require.NoError(t, err)
}

func TestEdge_IsNotCutWithoutTheProxy(t *testing.T) {
	t.Parallel()
	stack := Topology{Direct: true}
	_, err := stack.findEdges(API1, Redis)
	require.ErrorContains(t, err, "without --direct")
	require.Equal(t, stack.Addr(Redis), stack.Via(API1, Redis))
	require.NotContains(t, stack.Services(), Proxy)
}

// docker-compose.yml and nginx.conf write the ports out, so that they can be used without `stack`.
func TestEdges_AreThoseOfTheFiles(t *testing.T) {
	t.Parallel()
	compose, nginx := repoFile(t, "docker-compose.yml"), repoFile(t, "deploy/nginx/nginx.conf")
	var stack Topology
	for _, e := range edges {
		if e.from == PostgresStandby || e.to == PostgresStandby || e.to == PgBouncer {
			continue // native only
		}
		file, times := compose, 1
		if e.from == Nginx {
			file, times = nginx, 8 // in four upstreams, and once more in each for when both are out
		}
		require.Equal(t, times, strings.Count(file, stack.Via(e.from, e.to)), "%s", e)
	}
}

// TestFreeOffset_LeavesThePortsOfScripts compares every two ports of a stack with everything.
func TestFreeOffset_LeavesThePortsOfScripts(t *testing.T) {
	t.Parallel()
	full := &Topology{Postgres: Standby, Redis: Sentinel, Pooler: PgBouncer, Console: true}
	var ports []int
	for _, name := range full.Services() {
		ports = append(ports, full.Ports(name)...)
	}
	for _, script := range ports {
		for _, test := range ports {
			require.NotZero(t, (test+testShift-script)%scriptStep, "%d at a shifted offset is %d at another", test, script)
		}
	}
}
