package native

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/stack/deployment"
	"github.com/oncepay/oncepay/internal/stack/stacktest"
	"github.com/oncepay/oncepay/internal/stack/topology"
)

func TestProgram_ReplacesTheReplicasAlone(t *testing.T) {
	t.Parallel()
	d := &Driver{Deployment: stacktest.Deployment(t, topology.Topology{})}
	another := filepath.Join(d.Dir, "another")
	require.NoError(t, os.Mkdir(d.BinDir(), 0o755))
	for _, path := range []string{another, d.Program("oncepay"), d.Program("pspsim")} {
		require.NoError(t, os.WriteFile(path, []byte(path), 0o755))
	}
	for program, want := range map[string]string{"": d.Program("oncepay"), another: another} {
		require.NoError(t, d.State.Update(func(data *deployment.StateData) { data.Replica = program }))
		for service, path := range map[string]string{topology.API1: want, topology.API2: want, topology.PSP: d.Program("pspsim")} {
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
