package localserver

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// testTimeout bounds every wait of this package's tests; a server's start takes a second, ten on a
// loaded machine.
const testTimeout = 60 * time.Second

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

func TestStartPostgres_KeepsItsDataOverAStop(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	dir := filepath.Join(t.TempDir(), "pg")

	first, err := Postgres.Start(ctx, Config{Dir: dir, DieWithParent: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, first.Stop()); require.NoError(t, os.RemoveAll(first.DataDir)) })
	query(t, first.URL, "CREATE TABLE kept AS SELECT 42 AS n")
	require.NoError(t, first.Stop())
	require.False(t, first.Process.Alive())
	require.NoError(t, first.Stop(), "stopping twice is fine")

	second, err := Postgres.Start(ctx, Config{Dir: first.DataDir, DieWithParent: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, second.Stop()) })
	require.Equal(t, "42", query(t, second.URL, "SELECT n::text FROM kept"))
	require.Equal(t, "on", query(t, second.URL, "SHOW fsync"))
}

func TestStartPostgres_RemovesATemporaryDirectory(t *testing.T) {
	t.Parallel()
	server, err := Postgres.Start(testContext(t), Config{DieWithParent: true, Settings: NoSync})
	require.NoError(t, err)
	require.Equal(t, "off", query(t, server.URL, "SHOW fsync"))
	require.DirExists(t, server.DataDir)
	require.NoError(t, server.Stop())
	require.NoDirExists(t, server.DataDir)
}

func TestStartPostgres_RefusesATakenPort(t *testing.T) {
	t.Parallel()
	stranger, err := listen(0)
	require.NoError(t, err)
	defer func() { _ = stranger.Close() }()
	_, err = Postgres.Start(testContext(t), Config{Port: portOf(stranger)})
	require.ErrorContains(t, err, "is taken by")
}

// query returns the first column of the first row as text, or "".
func query(t *testing.T, url, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(testContext(t), url)
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.Background()) }()
	rows, err := conn.Query(testContext(t), sql)
	require.NoError(t, err)
	values, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	if len(values) == 0 {
		return ""
	}
	return values[0]
}
