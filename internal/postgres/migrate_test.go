package postgres

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/golang-migrate/migrate/v4/database"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/testenv"
)

// leftovers are the objects of the public schema that are not golang-migrate's.
const leftovers = `SELECT coalesce(array_agg(name), '{}') FROM (
	SELECT relname::text AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace
	UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace
	UNION ALL SELECT typname FROM pg_type WHERE typnamespace = 'public'::regnamespace) AS objects
	WHERE name !~ '^_?schema_migrations'`

func migrateTo(t *testing.T, url, direction string) uint {
	t.Helper()
	version, err := Migrate(t.Context(), url, direction)
	require.NoError(t, err)
	return version
}

func objects(t *testing.T, pool *pgxpool.Pool) (names []string) {
	t.Helper()
	require.NoError(t, pool.QueryRow(t.Context(), leftovers).Scan(&names))
	return names
}

func TestMigrate_GoesUpAndDownAndUp(t *testing.T) {
	t.Parallel()
	url := testenv.EmptyPostgres(t)
	pool := open(t, url)
	known, err := newestKnown()
	require.NoError(t, err)
	require.NotZero(t, known)
	require.Zero(t, migrateTo(t, url, "version"))
	require.ErrorContains(t, CheckSchema(t.Context(), pool), "oncepay migrate up")
	for range 2 {
		require.Equal(t, known, migrateTo(t, url, "up"))
		require.Equal(t, known, migrateTo(t, url, "up"), "nothing to do")
		require.NoError(t, CheckSchema(t.Context(), pool))
		require.NoError(t, Seed(t.Context(), pool))
		require.Zero(t, migrateTo(t, url, "down"))
		require.Empty(t, objects(t, pool))
		require.ErrorContains(t, CheckSchema(t.Context(), pool), "oncepay migrate up")
	}
	_, err = Migrate(t.Context(), url, "sideways")
	require.ErrorContains(t, err, "sideways")
}

// After a rollback the release of before runs its own `migrate up` on the newer schema.
func TestMigrate_LeavesANewerSchemaAsItIs(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	pool := open(t, url)
	_, err := pool.Exec(t.Context(), "UPDATE "+versionTable+" SET version = 9999")
	require.NoError(t, err)
	before := objects(t, pool)
	require.EqualValues(t, 9999, migrateTo(t, url, "up"))
	require.EqualValues(t, 9999, migrateTo(t, url, "version"))
	_, err = Migrate(t.Context(), url, "down")
	require.ErrorContains(t, err, "newer release")
	require.Equal(t, before, objects(t, pool))
	require.NoError(t, CheckSchema(t.Context(), pool))
}

func TestCheckKeys_CountsThoseThatStillCount(t *testing.T) {
	t.Parallel()
	require.NoError(t, CheckKeys(t.Context(), open(t, testenv.EmptyPostgres(t))))
	b := setup(t)
	require.NoError(t, CheckKeys(b.ctx, b.pool))
	b.use("expired", -time.Second)
	require.NoError(t, CheckKeys(b.ctx, b.pool), "its time is up")

	customer := b.customer().ID
	b.use("kept", time.Hour)
	for _, key := range []string{"buried", "to-be-buried"} {
		_, err := b.topUpOnce(key, 500, checkout.NewTopUp{CustomerID: customer})
		require.NoError(t, err)
		b.keepUntil(key, 0)
		if key == "buried" {
			b.purge(10, 2)
		}
	}
	_, err := b.PlaceOrder(b.ctx, b.call("refused", "r"), wants(customer, "unknown", 1))
	require.Error(t, err)
	b.beginCardPayment("begun")
	require.EqualError(t, CheckKeys(b.ctx, b.pool), "idempotency keys still count: 1 in progress, 1 refused, 2 tombstones, 1 with a kept answer")
}

func TestMigrate_IsSafeConcurrently(t *testing.T) {
	t.Parallel()
	url := testenv.EmptyPostgres(t)
	for _, err := range inParallel(6, func(int) error { _, err := Migrate(t.Context(), url, "up"); return err }) {
		require.NoError(t, err)
	}
	require.NoError(t, CheckSchema(t.Context(), open(t, url)))
}

func TestMigrate_FailureLeavesNothing(t *testing.T) {
	t.Parallel()
	url := testenv.EmptyPostgres(t)
	pool := open(t, url)
	driver, err := openDriver(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, driver.Close()) })
	require.NoError(t, driver.Lock())

	require.NoError(t, driver.SetVersion(7, true))
	require.Error(t, driver.Run(strings.NewReader("CREATE TABLE half (n int); SELECT 1 / 0")))
	version, dirty, err := driver.Version()
	require.NoError(t, err)
	require.Equal(t, database.NilVersion, version)
	require.False(t, dirty)
	require.Empty(t, objects(t, pool))

	require.NoError(t, driver.Run(strings.NewReader("CREATE TABLE whole (n int) -- no semicolon")))
	version, dirty, err = driver.Version()
	require.NoError(t, err)
	require.Equal(t, 7, version)
	require.False(t, dirty)
}

func TestMigrate_WithoutADatabaseFails(t *testing.T) {
	t.Parallel()
	_, err := Migrate(t.Context(), "postgres://127.0.0.1:1/oncepay", "up")
	require.Error(t, err)
	_, err = Migrate(t.Context(), "::", "up")
	require.ErrorContains(t, err, "URL")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Migrate(ended, testenv.EmptyPostgres(t), "up")
	require.ErrorIs(t, err, context.Canceled)
}

func TestSeed_AgainChangesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.order(b.customer().ID, 3)
	_, err := b.pool.Exec(b.ctx, "UPDATE products SET stock = 4, version = version + 1 WHERE sku = 'limited-print'")
	require.NoError(t, err)
	require.NoError(t, Seed(b.ctx, b.pool))
	require.EqualValues(t, 4, b.stock("limited-print"))
	require.EqualValues(t, plenty-3, b.stock("tee-black"))
	require.Equal(t, 2, b.count("accounts"))
	require.Equal(t, 2, b.count("api_keys"))
	require.Equal(t, 8, b.count("products"))
}
