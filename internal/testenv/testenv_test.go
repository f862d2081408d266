package testenv

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/localserver"
)

func TestMain(m *testing.M) { Main(m) }

// testTimeout bounds every wait of these tests.
const testTimeout = time.Minute

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

func TestPostgres_IsMigratedAndPrivate(t *testing.T) {
	t.Parallel()
	first, second := Postgres(t), Postgres(t)
	require.NotEqual(t, first, second)
	execute(t, first, "CREATE TABLE mine (n int)")
	require.Zero(t, count(t, second, "SELECT count(*) FROM pg_tables WHERE tablename = 'mine'"))
	require.Equal(t, 1, count(t, second, "SELECT count(*) FROM schema_migrations WHERE version > 0 AND NOT dirty"))
}

func TestEmptyPostgres_HasNoTables(t *testing.T) {
	t.Parallel()
	require.Zero(t, count(t, EmptyPostgres(t), "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"))
}

func TestPostgresServer_KeepsItsDataOverAStop(t *testing.T) {
	t.Parallel()
	server := PostgresServer(t)
	execute(t, server.URL, "CREATE TABLE kept AS SELECT 42 AS n")
	server.Stop()
	require.Error(t, localserver.PingPostgres(testContext(t), server.Addr))
	server.Start()
	require.Equal(t, 42, count(t, server.URL, "SELECT n FROM kept"))
	require.Equal(t, 1, count(t, server.URL, "SELECT count(*) FROM schema_migrations"))
}

func TestRedis_IsEmptyAndPrivate(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	first, second := openRedis(t, Redis(t)), openRedis(t, Redis(t))
	require.NoError(t, first.Set(ctx, "k", "v", 0).Err())
	require.Zero(t, second.DBSize(ctx).Val())
	require.NoError(t, second.Set(ctx, "k", "w", 0).Err())
	require.Equal(t, "v", first.Get(ctx, "k").Val())
}

func TestRedisServer_StopsStartsAndPauses(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	server := RedisServer(t)
	require.NoError(t, openRedis(t, server.URL).Set(ctx, "k", "v", 0).Err())

	server.Pause()
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	require.ErrorContains(t, localserver.PingRedis(short, server.Addr), "timeout")
	server.Resume()
	require.NoError(t, localserver.PingRedis(ctx, server.Addr))

	server.Stop()
	require.Error(t, localserver.PingRedis(ctx, server.Addr))
	server.Start()
	require.ErrorIs(t, openRedis(t, server.URL).Get(ctx, "k").Err(), redis.Nil, "Redis starts empty")
}

func TestMode_UnknownIsAnError(t *testing.T) {
	t.Parallel()
	_, err := choose(testContext(t), "podman")
	require.ErrorContains(t, err, "TESTENV")
}

func openRedis(t *testing.T, url string) *redis.Client {
	t.Helper()
	opts, err := redis.ParseURL(url)
	require.NoError(t, err)
	client := redis.NewClient(opts)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

func execute(t *testing.T, url, sql string) {
	t.Helper()
	withPostgres(t, url, func(ctx context.Context, conn *pgx.Conn) {
		_, err := conn.Exec(ctx, sql)
		require.NoError(t, err)
	})
}

func count(t *testing.T, url, sql string) (n int) {
	t.Helper()
	withPostgres(t, url, func(ctx context.Context, conn *pgx.Conn) {
		require.NoError(t, conn.QueryRow(ctx, sql).Scan(&n))
	})
	return n
}

func withPostgres(t *testing.T, url string, do func(context.Context, *pgx.Conn)) {
	t.Helper()
	ctx := testContext(t)
	conn, err := pgx.Connect(ctx, url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(ctx)) }()
	do(ctx, conn)
}
