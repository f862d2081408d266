package native

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
	"github.com/oncepay/oncepay/internal/stack/deployment"
	"github.com/oncepay/oncepay/internal/stack/stacktest"
	"github.com/oncepay/oncepay/internal/stack/topology"
)

func TestProgram_ReplacesTheReplicaThatItIsFor(t *testing.T) {
	t.Parallel()
	d := &Driver{Deployment: stacktest.Deployment(t, topology.Topology{})}
	another := filepath.Join(d.Dir, "another")
	require.NoError(t, os.Mkdir(d.BinDir(), 0o755))
	for _, path := range []string{another, d.Program("oncepay"), d.Program("pspsim")} {
		require.NoError(t, os.WriteFile(path, []byte(path), 0o755))
	}
	for program, want := range map[string]string{"": d.Program("oncepay"), another: another} {
		programs := map[string]string{topology.API1: program}
		require.NoError(t, d.State.Update(func(data *deployment.StateData) { data.Programs = programs }))
		require.Equal(t, d.Program("oncepay"), d.OncepayOf(deployment.Oncepay))
		for service, path := range map[string]string{topology.API1: want, topology.API2: d.Program("oncepay"), topology.PSP: d.Program("pspsim")} {
			run, err := d.prepare(t.Context(), service)
			require.NoError(t, err)
			require.Equal(t, path, run.Path, service)
		}
	}
}

func TestReplica_FindsRedis(t *testing.T) {
	t.Parallel()
	d := &Driver{Deployment: stacktest.Deployment(t, topology.Topology{})}
	require.Contains(t, d.replicaEnv(topology.API1), "REDIS_URL="+localserver.RedisURL(d.Via(topology.API1, topology.Redis)))

	d.Direct = true
	require.Contains(t, d.replicaEnv(topology.API1), "REDIS_URL=redis://"+d.Addr(topology.Redis)+"/0")

	d.Direct, d.Redis = false, topology.Sentinel
	sentinels := d.Addr(topology.Sentinel1) + "," + d.Addr(topology.Sentinel2) + "," + d.Addr(topology.Sentinel3)
	require.Contains(t, d.replicaEnv(topology.API1), "REDIS_URL=redis+sentinel://"+sentinels+"/oncepay")
}

func TestConsole_GetsTheTracesOfTheReplicasIfThereIsOne(t *testing.T) {
	t.Parallel()
	d := &Driver{Deployment: stacktest.Deployment(t, topology.Topology{})}
	require.NotContains(t, d.Services(), topology.Console)
	require.NotContains(t, strings.Join(d.replicaEnv(topology.API1), " "), "OTEL_")

	d.Console = true
	require.NoError(t, d.State.Update(func(data *deployment.StateData) { data.Env = []string{"OTEL_EXPORTER_OTLP_ENDPOINT=elsewhere"} }))
	require.Contains(t, d.Services(), topology.Console)
	env := d.replicaEnv(topology.API1)
	ours := slices.Index(env, "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+d.Addr(topology.Console))
	require.GreaterOrEqual(t, ours, 0)
	require.Greater(t, slices.Index(env, "OTEL_EXPORTER_OTLP_ENDPOINT=elsewhere"), ours, "what the user says comes last, and wins")
}

func TestConsole_SaysWhoHasItsPortAndHowToDoWithoutIt(t *testing.T) {
	t.Parallel()
	d := &Driver{Deployment: stacktest.Deployment(t, topology.Topology{Console: true})}
	stranger, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", d.Addr(topology.Console))
	require.NoError(t, err)
	defer func() { _ = stranger.Close() }()
	err = d.holdPorts(t.Context())
	require.ErrorIs(t, err, deployment.ErrNothingStarted)
	require.ErrorContains(t, err, fmt.Sprintf("console: port %d is taken by native.test (pid %d) (--no-console leaves the console out)",
		d.Port(topology.Console), os.Getpid()))
}
