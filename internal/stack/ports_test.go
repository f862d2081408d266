package stack

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPorts_AreDistinct(t *testing.T) {
	t.Parallel()
	owner := map[int]string{}
	for _, name := range slices.Concat(Services, sentinelServices, []string{PostgresStandby}) {
		for _, port := range (ports{offset: 7}).allPorts(name) {
			require.Empty(t, owner[port], "port %d of %s", port, name)
			owner[port] = name
		}
	}
	for name := range basePorts {
		require.LessOrEqual(t, (ports{offset: maxOffset}).port(name), 65535)
	}
}

func TestEdge_IsFoundInEitherOrder(t *testing.T) {
	t.Parallel()
	there, err := findEdge(API1, Redis)
	require.NoError(t, err)
	back, err := findEdge(Redis, API1)
	require.NoError(t, err)
	require.Equal(t, there, back)
	_, err = findEdge(API1, API2)
	require.ErrorContains(t, err, "don't talk to each other")
}

// docker-compose.yml and nginx.conf write the ports out, so that they can be used without `stack`.
func TestPorts_AreThoseOfTheFiles(t *testing.T) {
	t.Parallel()
	compose := readRepo(t, "docker-compose.yml")
	nginx := readRepo(t, nginxConf)
	for _, e := range edges {
		if e.from == PostgresStandby || e.to == PostgresStandby {
			continue // native only
		}
		file := compose
		if e.from == Nginx {
			file = nginx
		}
		require.Equal(t, 1, strings.Count(file, ports{}.via(e.from, e.to)), "%s", e)
	}
	for name, variable := range portVariables {
		require.Contains(t, compose, fmt.Sprintf(`"127.0.0.1:${%s:-%d}:%d"`, variable, basePorts[name], basePorts[name]))
	}
	for _, i := range images {
		require.Contains(t, compose, fmt.Sprintf("${%s:-%s}", i.variable, i.official))
	}
}

func readRepo(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile("../../" + path)
	require.NoError(t, err)
	return string(content)
}
