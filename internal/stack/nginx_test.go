package stack

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/localserver"
)

func TestRenderNginx_MovesEveryAddress(t *testing.T) {
	t.Parallel()
	conf, err := renderNginx(repoFile(t, nginxConf), &Topology{Offset: 1000})
	require.NoError(t, err)
	for _, want := range []string{"listen 127.0.0.1:9080 ", "server 127.0.0.1:21081 max_conns", "server 127.0.0.1:21082 max_conns",
		"    access_log requests.log requests;"} {
		require.Contains(t, conf, want)
	}
	for _, old := range []string{"listen 8080", ":20081", ":20082"} {
		require.NotContains(t, conf, old)
	}
}

func TestRenderNginx_GoesPastTheProxyWithoutIt(t *testing.T) {
	t.Parallel()
	direct := Topology{Direct: true}
	conf, err := renderNginx(repoFile(t, nginxConf), &direct)
	require.NoError(t, err)
	require.Contains(t, conf, "server "+direct.Addr(API1)+" ")
	require.NotContains(t, conf, requestLog)
}

func TestRenderNginx_RefusesAFileWithoutTheAddresses(t *testing.T) {
	t.Parallel()
	_, err := renderNginx(strings.Replace(repoFile(t, nginxConf), "listen 8080 ", "listen 80 ", 1), &Topology{})
	require.ErrorContains(t, err, "listen 8080")
}

func TestNginx_AcceptsTheConfiguration(t *testing.T) {
	t.Parallel()
	run, err := prepareNginx("../..", localserver.Config{Dir: filepath.Join(t.TempDir(), "nginx")}, &Topology{Offset: 1000})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(run.Dir)) })
	out, err := exec.CommandContext(testContext(t), run.Path, append(run.Args, "-t")...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func TestRequestLog_TellsWhatWasPassedOnAndWhenItWasRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := &nativeDriver{stackOf(t, Topology{})}
	d.state.Services[Nginx] = serviceState{Dir: dir}
	_, err := d.PassedOn()
	require.ErrorIs(t, err, os.ErrNotExist)
	lines := "t=1790000000.123 r1 1 POST /v1/orders 127.0.0.1:1, 127.0.0.1:2 502, 201\nt=1790000000.124 r2 1 GET /v1/orders 127.0.0.1:1, 127.0.0.1:2 502, 200\n" +
		"t=1790000000.125 r3 1 POST /v1/orders a, b -, 409\nt=1790000000.126 r4 0 POST /v1/o 1 POST a 201\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, requestLog), []byte(lines), 0o600))
	n, err := d.PassedOn()
	require.NoError(t, err)
	require.Equal(t, 2, n)
	started, err := d.ReadByNginx()
	require.NoError(t, err)
	require.Len(t, started, 4)
	require.Equal(t, time.UnixMilli(1_790_000_000_126), started["r4"])
}
