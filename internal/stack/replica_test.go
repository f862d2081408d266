package stack

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/localserver"
)

func TestProgram_ReplacesTheReplicaThatItIsFor(t *testing.T) {
	t.Parallel()
	d := &nativeDriver{stackOf(t, Topology{})}
	another := filepath.Join(d.Dir, "another")
	require.NoError(t, os.Mkdir(d.binDir(), 0o755))
	for _, path := range []string{another, d.Program("oncepay"), d.Program("pspsim")} {
		require.NoError(t, os.WriteFile(path, []byte(path), 0o755))
	}
	for program, want := range map[string]string{"": d.Program("oncepay"), another: another} {
		programs := map[string]string{API1: program}
		require.NoError(t, d.update(func(data *state) { data.Programs = programs }))
		require.Equal(t, d.Program("oncepay"), d.oncepayOf(Oncepay))
		for service, path := range map[string]string{API1: want, API2: d.Program("oncepay"), PSP: d.Program("pspsim")} {
			run, err := d.prepare(t.Context(), service)
			require.NoError(t, err)
			require.Equal(t, path, run.Path, service)
		}
	}
}

func TestReplica_FindsRedis(t *testing.T) {
	t.Parallel()
	d := &nativeDriver{stackOf(t, Topology{})}
	require.Contains(t, d.replicaEnv(API1), "REDIS_URL="+localserver.RedisURL(d.Via(API1, Redis)))

	d.Direct = true
	require.Contains(t, d.replicaEnv(API1), "REDIS_URL=redis://"+d.Addr(Redis)+"/0")

	d.Direct, d.Redis = false, Sentinel
	sentinels := d.Addr(Sentinel1) + "," + d.Addr(Sentinel2) + "," + d.Addr(Sentinel3)
	require.Contains(t, d.replicaEnv(API1), "REDIS_URL=redis+sentinel://"+sentinels+"/oncepay")
}

func TestConsole_GetsTheTracesOfTheReplicasIfThereIsOne(t *testing.T) {
	t.Parallel()
	d := &nativeDriver{stackOf(t, Topology{})}
	require.NotContains(t, d.Services(), Console)
	require.NotContains(t, strings.Join(d.replicaEnv(API1), " "), "OTEL_")

	d.Console = true
	require.NoError(t, d.update(func(data *state) { data.Env = []string{"OTEL_EXPORTER_OTLP_ENDPOINT=elsewhere"} }))
	require.Contains(t, d.Services(), Console)
	env := d.replicaEnv(API1)
	ours := slices.Index(env, "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+d.Addr(Console))
	require.GreaterOrEqual(t, ours, 0)
	require.Greater(t, slices.Index(env, "OTEL_EXPORTER_OTLP_ENDPOINT=elsewhere"), ours, "what the user says comes last, and wins")
}

func TestConsole_SaysWhoHasItsPortAndHowToDoWithoutIt(t *testing.T) {
	t.Parallel()
	d := &nativeDriver{stackOf(t, Topology{Console: true})}
	stranger, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", d.Addr(Console))
	require.NoError(t, err)
	defer func() { _ = stranger.Close() }()
	err = d.hold(t.Context(), d.Services()...)
	require.ErrorIs(t, err, errNothingStarted)
	require.ErrorContains(t, err, fmt.Sprintf("console: port %d is taken by stack.test (pid %d)", d.Port(Console), os.Getpid()))
	require.ErrorContains(t, err, "--no-console")
}
