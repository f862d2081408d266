package stack

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRenderNginxMovesEveryAddress(t *testing.T) {
	t.Parallel()
	conf, err := renderNginx(readRepo(t, nginxConf), ports{1000})
	require.NoError(t, err)
	for _, want := range []string{"listen 127.0.0.1:9080;", "server 127.0.0.1:21081 max_fails", "server 127.0.0.1:21082 max_fails"} {
		require.Contains(t, conf, want)
	}
	for _, old := range []string{"listen 8080", ":20081", ":20082"} {
		require.NotContains(t, conf, old)
	}
}

func TestRenderNginxRefusesAFileWithoutTheAddresses(t *testing.T) {
	t.Parallel()
	_, err := renderNginx(strings.Replace(readRepo(t, nginxConf), "listen 8080;", "listen 80;", 1), ports{})
	require.ErrorContains(t, err, "listen 8080;")
}

func TestNginxAcceptsTheConfiguration(t *testing.T) {
	t.Parallel()
	run, err := prepareNginx("../..", filepath.Join(t.TempDir(), "nginx"), "", ports{1000})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(run.dir)) })
	out, err := exec.CommandContext(testContext(t), run.path, append(run.args, "-t")...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}
