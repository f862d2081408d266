package stack

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestATakenPortIsNamedWithItsOwner(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"127.0.0.1:0", "[::]:0"} {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
		require.NoError(t, err)
		port := portOf(t, l)

		err = checkPorts("nginx", []int{port})
		require.ErrorContains(t, err, fmt.Sprintf("port %d, which nginx needs, is taken by", port))
		require.ErrorContains(t, err, fmt.Sprintf("%s (pid %d)", processName(os.Getpid()), os.Getpid()))
		require.NoError(t, l.Close())
		// Eventually, because the system may give the port to somebody else for a moment.
		require.Eventually(t, func() bool { return checkPorts("nginx", []int{port}) == nil }, testTimeout, pollInterval)
	}
}

func portOf(t *testing.T, l net.Listener) int {
	t.Helper()
	_, text, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	port, err := strconv.Atoi(text)
	require.NoError(t, err)
	return port
}

func TestNoTwoServicesShareAPort(t *testing.T) {
	t.Parallel()
	owner := map[int]string{}
	for _, name := range slices.Concat(Services, sentinelServices) {
		for _, port := range (ports{7}).allPorts(name) {
			require.Empty(t, owner[port], "port %d of %s", port, name)
			owner[port] = name
		}
	}
	for name := range basePorts {
		require.LessOrEqual(t, (ports{maxOffset}).port(name), 65535)
	}
}

func TestEdgesAreFoundInEitherOrder(t *testing.T) {
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
func TestTheFilesNameTheSamePorts(t *testing.T) {
	t.Parallel()
	compose := readRepo(t, "docker-compose.yml")
	nginx := readRepo(t, nginxConf)
	for _, e := range edges {
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
