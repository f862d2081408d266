package compose

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/stack/stacktest"
	"github.com/oncepay/oncepay/internal/stack/topology"
)

// TestRedis_RefusesWritesInsteadOfForgetting where its memory ends, in a stack of either driver.
func TestRedis_RefusesWritesInsteadOfForgetting(t *testing.T) {
	t.Parallel()
	require.Contains(t, stacktest.RepoFile(t, "docker-compose.yml"), "--maxmemory, 2gb, --maxmemory-policy, noeviction]")
}

// docker-compose.yml writes ports and images out, so that it can be used without `stack`.
func TestComposeFile_HasOurPortsAndImages(t *testing.T) {
	t.Parallel()
	file := stacktest.RepoFile(t, "docker-compose.yml")
	var stack topology.Topology
	for _, name := range topology.Services {
		require.Contains(t, file, fmt.Sprintf(`"127.0.0.1:${%s:-%d}:%d"`, portVariable(name, "_PORT"), stack.Port(name), stack.Port(name)))
	}
	for _, i := range images {
		require.Contains(t, file, fmt.Sprintf("${%s:-%s}", i.Variable, i.Official))
	}
}
