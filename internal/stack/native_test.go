package stack

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProgram_ReplacesTheReplicasAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	another := filepath.Join(dir, "another")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "bin"), 0o755))
	for _, path := range []string{another, filepath.Join(dir, "bin", "oncepay"), filepath.Join(dir, "bin", "pspsim")} {
		require.NoError(t, os.WriteFile(path, []byte(path), 0o755))
	}
	for program, want := range map[string]string{"": filepath.Join(dir, "bin", "oncepay"), another: another} {
		s, err := New(Options{Dir: dir, Driver: Native, ReplicaProgram: program})
		require.NoError(t, err)
		_, err = s.settle(t.Context())
		require.NoError(t, err)
		for service, path := range map[string]string{API1: want, API2: want, PSP: filepath.Join(dir, "bin", "pspsim")} {
			run, err := (&native{Stack: s}).prepare(t.Context(), service)
			require.NoError(t, err)
			require.Equal(t, path, run.Path, service)
		}
	}
}

func TestProgram_NeedsTheNativeDriver(t *testing.T) {
	t.Parallel()
	s, err := New(Options{Dir: t.TempDir(), Driver: Compose, ReplicaProgram: "/another"})
	require.NoError(t, err)
	_, err = s.settle(t.Context())
	require.ErrorContains(t, err, "native")
}

func TestDirect_ConnectsTheServicesToEachOther(t *testing.T) {
	t.Parallel()
	s := emptyStack(t, Options{Direct: true, Driver: Native})
	_, err := s.settle(t.Context())
	require.NoError(t, err)
	require.NotContains(t, s.services(), Proxy)
	require.Contains(t, (&native{Stack: s}).replicaEnv(API1), "REDIS_URL=redis://"+s.addr(Redis)+"/0")
	conf, err := renderNginx(readRepo(t, nginxConf), s.ports)
	require.NoError(t, err)
	require.Contains(t, conf, "server "+s.addr(API1)+" ")
	_, err = s.findEdge(API1, Redis)
	require.ErrorContains(t, err, "without --direct")

	later, err := New(Options{Dir: s.Dir})
	require.NoError(t, err)
	require.True(t, later.direct, "later commands know")
}

func TestDirect_IsDecidedAtTheFirstUp(t *testing.T) {
	t.Parallel()
	s := emptyStack(t, Options{Driver: Native})
	_, err := s.settle(t.Context())
	require.NoError(t, err)
	s.Direct = true
	_, err = s.settle(t.Context())
	require.ErrorContains(t, err, "take it down first")
	s = emptyStack(t, Options{Driver: Compose, Direct: true})
	_, err = s.settle(t.Context())
	require.ErrorContains(t, err, "only the native driver")
}
