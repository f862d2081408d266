package localserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
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

// TestStartPostgres_IsNotKeptAwayByAnotherProcess: a server was killed, and its process ID is that
// of a zombie or of another program now.
func TestStartPostgres_IsNotKeptAwayByAnotherProcess(t *testing.T) {
	t.Parallel()
	for name, program := range map[string][]string{"a zombie": {"true"}, "another program": {"sleep", "600"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			killed, err := Postgres.Start(testContext(t), Config{Dir: filepath.Join(t.TempDir(), "pg"), DieWithParent: true})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, killed.Stop()); require.NoError(t, os.RemoveAll(killed.DataDir)) })
			require.NoError(t, killed.Process.Kill())

			other := exec.CommandContext(t.Context(), program[0], program[1:]...)
			other.SysProcAttr = sysProcAttr(killed.run.User, syscall.SIGKILL) // PostgreSQL sees its own user's processes
			require.NoError(t, other.Start())
			t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() }) // a zombie until then
			require.Eventually(t, func() bool {
				_, err := startStamp(other.Process.Pid)
				return (name == "a zombie") == errors.Is(err, os.ErrProcessDone)
			}, testTimeout, PollInterval)
			lock := filepath.Join(killed.DataDir, "data", "postmaster.pid")
			text, err := os.ReadFile(lock)
			require.NoError(t, err)
			_, rest, _ := strings.Cut(string(text), "\n")
			require.NoError(t, os.WriteFile(lock, fmt.Appendf(nil, "%d\n%s", other.Process.Pid, rest), 0o600))

			server, err := Postgres.Start(testContext(t), Config{Dir: killed.DataDir, DieWithParent: true})
			require.NoError(t, err)
			require.NoError(t, server.Stop())
		})
	}
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
