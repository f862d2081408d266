package stack

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// standbyStack runs the PostgreSQL of a stack with a standby and nothing else.
func standbyStack(t *testing.T, kind string) *Stack {
	t.Helper()
	s := emptyStack(t, Options{Postgres: kind, Direct: true, Driver: Native})
	_, err := s.settle(t.Context())
	require.NoError(t, err)
	n := &native{Stack: s}
	s.driver = n
	require.NoError(t, n.makeDirs())
	t.Cleanup(func() { require.NoError(t, n.down(context.WithoutCancel(t.Context()), false)) })
	require.NoError(t, n.ensurePrimary(testContext(t)))
	require.NoError(t, n.ensureStandby(testContext(t)))
	return s
}

// connect finds the server that takes writes, as a replica does.
func connect(t *testing.T, s *Stack) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(testContext(t), s.databaseURL(API1))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

func TestPromote_KeepsWhatASyncStandbyHasApplied(t *testing.T) {
	t.Parallel()
	s, ctx := standbyStack(t, SyncStandby), testContext(t)
	require.Equal(t, s.addr(Postgres), s.PostgresPrimary())
	_, err := connect(t, s).Exec(ctx, "CREATE TABLE kept AS SELECT 42 AS n")
	require.NoError(t, err)

	require.NoError(t, promote(ctx, s, []string{Postgres}))
	require.Equal(t, s.addr(PostgresStandby), s.PostgresPrimary())
	var n int
	conn := connect(t, s)
	require.NoError(t, conn.QueryRow(ctx, "SELECT n FROM kept").Scan(&n))
	require.Equal(t, 42, n)
	_, err = conn.Exec(ctx, "INSERT INTO kept VALUES (43)")
	require.NoError(t, err, "it takes writes")

	require.ErrorIs(t, s.driver.start(ctx, Postgres), errDiverged)
	require.ErrorContains(t, promote(ctx, s, []string{Postgres}), "no standby")
}

func TestSyncStandby_HoldsCommitsBackWhileItIsAway(t *testing.T) {
	t.Parallel()
	s, ctx := standbyStack(t, SyncStandby), testContext(t)
	conn := connect(t, s)
	require.NoError(t, s.driver.stop(ctx, PostgresStandby))
	brief, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	_, err := conn.Exec(brief, "CREATE TABLE waiting (n int)")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, s.driver.start(ctx, PostgresStandby))
	_, err = connect(t, s).Exec(ctx, "CREATE TABLE afterwards (n int)")
	require.NoError(t, err)
}
