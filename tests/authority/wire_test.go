package authority_test

import (
	"context"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/authority"
	"github.com/oncepay/oncepay/internal/testenv"
)

// wired is an authority with one connection, through a proxy.
func wired(t *testing.T) (context.Context, *authority.Keys, *testenv.Proxy) {
	t.Helper()
	ctx, direct := open(t)
	require.NoError(t, authority.Migrate(ctx, direct))
	u, err := url.Parse(direct.Config().ConnString())
	require.NoError(t, err)
	way := testenv.NewProxy(t, u.Host)
	u.Host = way.Addr
	config, err := pgxpool.ParseConfig(u.String())
	require.NoError(t, err)
	config.MaxConns = 1
	pool, err := pgxpool.NewWithConfig(ctx, config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return ctx, authority.New(pool), way
}

// done is a request that makes so many statements, one by one.
func done(statements int) authority.Run {
	return func(ctx context.Context, tx *authority.Tx) (authority.Outcome, error) {
		for range statements {
			if _, err := tx.Exec(ctx, "SELECT now()"); err != nil {
				return authority.Outcome{}, err
			}
		}
		return authority.Done(authority.Answer{Status: 200}), nil
	}
}

// TestRoundTrips_AreTwoBesidesTheStatementsOfTheUser: the first one begins, and the last one
// commits.
func TestRoundTrips_AreTwoBesidesTheStatementsOfTheUser(t *testing.T) {
	t.Parallel()
	ctx, keys, way := wired(t)
	once := func(key string, statements int) int {
		return way.Count(func() {
			_, err := keys.Once(ctx, claim(key), done(statements))
			require.NoError(t, err)
		})
	}
	for _, warm := range []string{"a", "b", "a"} { // a connection prepares a statement at its first use
		once(warm, 1)
	}
	require.Equal(t, 2, once("c", 0))
	require.Equal(t, 5, once("d", 3))
	require.Equal(t, 2, once("d", 3), "a replay")
}

// TestOnce_IsCommittedOnceWhateverAnswerIsLost cuts the connection at each of the two round trips.
func TestOnce_IsCommittedOnceWhateverAnswerIsLost(t *testing.T) {
	t.Parallel()
	ctx, keys, way := wired(t)
	_, err := keys.Once(ctx, claim("first"), done(0))
	require.NoError(t, err)

	way.FailNext("", testenv.Fault{Cut: true})
	result, err := keys.Once(ctx, claim("begin"), done(0))
	require.NoError(t, err, "nothing can have been committed, so it begins again")
	require.False(t, result.Replayed)

	way.FailNext("", testenv.Fault{})
	way.FailNext("", testenv.Fault{Cut: true})
	_, err = keys.Once(ctx, claim("commit"), done(0))
	require.ErrorIs(t, err, idempotency.ErrUnavailable)
	result, err = keys.Once(ctx, claim("commit"), done(0))
	require.NoError(t, err)
	require.True(t, result.Replayed)
}

// TestAuthority_SurvivesConnectionsThatWereLost: as after a restart of PostgreSQL.
func TestAuthority_SurvivesConnectionsThatWereLost(t *testing.T) {
	t.Parallel()
	ctx, pool := open(t)
	require.NoError(t, authority.Migrate(ctx, pool))
	keys := authority.New(pool)
	for _, use := range []func() error{
		func() error { _, err := keys.Once(ctx, claim("a"), done(1)); return err },
		func() error { _, err := keys.Look(ctx, "", "a"); return err },
	} {
		require.NoError(t, use())
		endSessions(ctx, t, pool)
		require.NoError(t, use())
	}
}

func endSessions(ctx context.Context, t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	admin, err := pgx.Connect(ctx, pool.Config().ConnString())
	require.NoError(t, err)
	defer func() { require.NoError(t, admin.Close(ctx)) }()
	_, err = admin.Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	require.NoError(t, err)
}

func TestAuthority_IsUnavailableWhilePostgreSQLIsAway(t *testing.T) {
	t.Parallel()
	ctx, keys, way := wired(t)
	way.Partition()
	_, err := keys.Once(ctx, claim("a"), done(1))
	require.ErrorIs(t, err, idempotency.ErrUnavailable)
	_, err = keys.Look(ctx, "", "a")
	require.ErrorIs(t, err, idempotency.ErrUnavailable)
}
