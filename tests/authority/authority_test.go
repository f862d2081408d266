// Package authority_test runs the suite of idempotency/authority on a real PostgreSQL, and what
// is true of its own table alone.
package authority_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency/authority"
	"github.com/oncepay/oncepay/idempotency/authority/authoritytest"
	"github.com/oncepay/oncepay/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// patience bounds every wait of a test.
const patience = time.Minute

// open makes a pool on an empty database.
func open(t *testing.T) (context.Context, *pgxpool.Pool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	pool, err := pgxpool.New(ctx, testenv.EmptyPostgres(t))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return ctx, pool
}

func TestAuthority_PassesTheSuite(t *testing.T) {
	t.Parallel()
	authoritytest.Run(t, func(t *testing.T) authoritytest.Bench {
		ctx, pool := open(t)
		require.NoError(t, authority.Migrate(ctx, pool))
		return authoritytest.Bench{Pool: pool}
	})
}

// TestAuthority_PassesTheSuiteOnATableOfItsUser has other names and types of columns.
func TestAuthority_PassesTheSuiteOnATableOfItsUser(t *testing.T) {
	t.Parallel()
	authoritytest.Run(t, func(t *testing.T) authoritytest.Bench {
		ctx, pool := open(t)
		require.NoError(t, authority.Migrate(ctx, pool, authority.WithTable("shop_keys", "scope")))
		_, err := pool.Exec(ctx, `ALTER TABLE shop_keys RENAME COLUMN scope TO tenant;
			ALTER TABLE shop_keys ALTER COLUMN tenant TYPE uuid USING tenant::uuid, ALTER COLUMN resource_id TYPE uuid USING resource_id::uuid`)
		require.NoError(t, err)
		return authoritytest.Bench{Pool: pool, Table: "shop_keys", Column: "tenant", New: uuid.NewString}
	})
}

func TestMigrate_MayRunAtEachStartOfEachReplica(t *testing.T) {
	t.Parallel()
	ctx, pool := open(t)
	errs := make(chan error, 4)
	for range cap(errs) {
		go func() { errs <- authority.Migrate(ctx, pool) }()
	}
	for range cap(errs) {
		require.NoError(t, <-errs)
	}
	_, err := authority.New(pool).Look(ctx, "a", "k")
	require.ErrorIs(t, err, authority.ErrNotFound)
}

func TestNew_RefusesNamesThatNeedQuotes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "Keys", "a.b", `k" --`} {
		require.Panics(t, func() { authority.WithTable(name, "scope") })
		require.Panics(t, func() { authority.WithTable("keys", name) })
	}
	require.Panics(t, func() { authority.New(nil) })
}

func claim(key string) authority.Claim {
	return authority.Claim{Key: key, Operation: "test", TTL: time.Hour, ArrivedAt: time.Now()}
}
