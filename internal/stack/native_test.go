package stack

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReplicasRunAnotherProgramAndTheOthersDoNot(t *testing.T) {
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
			run, err := (&native{s}).prepare(t.Context(), service)
			require.NoError(t, err)
			require.Equal(t, path, run.path, service)
		}
	}
}

func TestAnotherProgramNeedsTheNativeDriver(t *testing.T) {
	t.Parallel()
	s, err := New(Options{Dir: t.TempDir(), Driver: Compose, ReplicaProgram: "/another"})
	require.NoError(t, err)
	_, err = s.settle(t.Context())
	require.ErrorContains(t, err, "native")
}
