package stack

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/wait"
)

// standbyStack runs the PostgreSQL of a stack with a standby and nothing else.
func standbyStack(t *testing.T, kind string) *nativeDriver {
	t.Helper()
	d := newDriver(t, Topology{Postgres: kind, Direct: true})
	require.NoError(t, d.ensure(testContext(t), d.Primary()))
	require.NoError(t, d.ensureStandby(testContext(t)))
	return d
}

// commitTime is how long we wait for a commit that must not come: it takes milliseconds.
const commitTime = 200 * time.Millisecond

// connect finds the server that takes writes, as a replica does, but as the owner: nothing has
// migrated this database.
func connect(t *testing.T, d *nativeDriver) *pgx.Conn {
	t.Helper()
	service := localserver.ServiceRole + ":" + localserver.ServicePassword
	conn, err := pgx.Connect(testContext(t), strings.Replace(d.databaseURL(API1), service, "oncepay:oncepay", 1))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

func TestPromote_KeepsWhatASyncStandbyHasApplied(t *testing.T) {
	t.Parallel()
	d, ctx := standbyStack(t, SyncStandby), testContext(t)
	require.Equal(t, d.Addr(Postgres), d.PostgresPrimary())
	_, err := connect(t, d).Exec(ctx, "CREATE TABLE kept AS SELECT 42 AS n")
	require.NoError(t, err)

	require.NoError(t, d.promote(ctx))
	require.Equal(t, d.Addr(PostgresStandby), d.PostgresPrimary())
	var n int
	conn := connect(t, d)
	require.NoError(t, conn.QueryRow(ctx, "SELECT n FROM kept").Scan(&n))
	require.Equal(t, 42, n)
	_, err = conn.Exec(ctx, "INSERT INTO kept VALUES (43)")
	require.NoError(t, err, "it takes writes")

	require.ErrorIs(t, d.control(ctx, "start", Postgres), errDiverged)
	require.ErrorContains(t, d.promote(ctx), "not a standby again yet")
}

func TestFollow_MakesTheFormerPrimaryAStandbyThatCanBePromoted(t *testing.T) {
	t.Parallel()
	d, ctx := standbyStack(t, SyncStandby), testContext(t)
	require.ErrorContains(t, d.follow(ctx), "no server was ended")
	_, err := connect(t, d).Exec(ctx, "CREATE TABLE kept (primary_was text)")
	require.NoError(t, err)
	for range 2 {
		primary, standby := d.Primary(), d.StandbyServer()
		_, err := connect(t, d).Exec(ctx, "INSERT INTO kept VALUES ($1)", primary)
		require.NoError(t, err)
		require.NoError(t, d.promote(ctx))
		require.Equal(t, standby, d.Primary())
		require.NoError(t, d.follow(ctx))
		require.NoError(t, d.probe(ctx, primary))
		require.NoError(t, d.probe(ctx, standby))
	}
	var kept int
	require.NoError(t, connect(t, d).QueryRow(ctx, "SELECT count(*) FROM kept").Scan(&kept))
	require.Equal(t, 2, kept)
	require.Equal(t, Postgres, d.Primary())
}

// The asynchronous kind: a standby does without its primary, also after a restart.
func TestStandby_IsReadyWithoutItsPrimary(t *testing.T) {
	t.Parallel()
	d, ctx := standbyStack(t, Standby), testContext(t)
	require.NoError(t, d.control(ctx, "crash", Postgres))
	require.Error(t, d.probe(ctx, Postgres))
	require.NoError(t, d.probe(ctx, PostgresStandby))
	require.NoError(t, d.control(ctx, "stop", PostgresStandby))
	require.NoError(t, d.control(ctx, "start", PostgresStandby))
	require.NoError(t, wait.For(ctx, testTimeout, localserver.PollInterval, probing(d, PostgresStandby)))
	require.NoError(t, d.promote(ctx))
	require.NoError(t, d.probe(ctx, PostgresStandby))
	_, err := connect(t, d).Exec(ctx, "CREATE TABLE afterwards (n int)")
	require.NoError(t, err, "it takes writes")
}

func TestSyncStandby_HoldsCommitsBackWhileItIsAway(t *testing.T) {
	t.Parallel()
	d, ctx := standbyStack(t, SyncStandby), testContext(t)
	conn := connect(t, d)
	require.NoError(t, d.control(ctx, "stop", PostgresStandby))
	brief, cancel := context.WithTimeout(ctx, commitTime)
	defer cancel()
	_, err := conn.Exec(brief, "CREATE TABLE waiting (n int)")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, d.control(ctx, "start", PostgresStandby))
	_, err = connect(t, d).Exec(ctx, "CREATE TABLE afterwards (n int)")
	require.NoError(t, err)
}
