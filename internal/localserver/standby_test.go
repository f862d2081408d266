package localserver

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStandby_IsReadyAndPromotedWithoutItsPrimary(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	primary, err := Postgres.Start(ctx, Config{DieWithParent: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, primary.Stop()) })
	start := func(dir string) *Server {
		standby, err := Standby(primary.Addr).Start(ctx, Config{Dir: dir, DieWithParent: true})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, standby.Stop()); require.NoError(t, os.RemoveAll(standby.DataDir)) })
		return standby
	}
	standby := start(filepath.Join(t.TempDir(), "standby"))
	query(t, primary.URL, "CREATE TABLE kept AS SELECT 42 AS n")
	require.NoError(t, AwaitStandby(ctx, primary.Addr))

	require.NoError(t, primary.Process.Stop(ctx, syscall.SIGQUIT, testTimeout))
	require.NoError(t, standby.Stop())
	standby = start(standby.DataDir)
	require.Equal(t, "42", query(t, standby.URL, "SELECT n::text FROM kept"), "it serves reads")
	require.NoError(t, Promote(ctx, standby.Addr))
	require.Equal(t, "43", query(t, standby.URL, "INSERT INTO kept VALUES (43) RETURNING n::text"), "and takes writes")
}
