package stack

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestComposeFile_HasRedisRefuseWrites where its memory ends, in a stack of either driver.
func TestComposeFile_HasRedisRefuseWrites(t *testing.T) {
	t.Parallel()
	require.Contains(t, repoFile(t, "docker-compose.yml"), "--maxmemory, 2gb, --maxmemory-policy, noeviction]")
}

// docker-compose.yml writes ports and images out, so that it can be used without `stack`.
func TestComposeFile_HasOurPortsAndImages(t *testing.T) {
	t.Parallel()
	file := repoFile(t, "docker-compose.yml")
	for variable, port := range new(Topology).published() {
		require.Contains(t, file, fmt.Sprintf(`"127.0.0.1:${%s:-%d}:%d"`, variable, port, port))
	}
	for _, i := range images {
		require.Contains(t, file, fmt.Sprintf("${%s:-%s}", i.Variable, i.Official))
	}
}
