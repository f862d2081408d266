package postgres

import (
	"testing"

	"github.com/golang-migrate/migrate/v4"
	migratepgx "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/db"
	"github.com/oncepay/oncepay/internal/testenv"
)

// beforeAppendOnly is an outbox of version 16 in which a later event was published before an
// earlier one, as its subject was another one.
const beforeAppendOnly = `
INSERT INTO accounts (id, name) VALUES ('00000000-0000-0000-0000-000000000001', 'a');
INSERT INTO outbox (event_id, account_id, type, aggregate, subject, data, published_at, attempts)
SELECT ('00000000-0000-0000-0000-00000000000' || n)::uuid, '00000000-0000-0000-0000-000000000001', 'order.placed', 'order',
	gen_random_uuid(), '{}', CASE WHEN n IN (1, 3, 5) THEN now() END, n % 2 FROM generate_series(1, 6) n;
INSERT INTO inbox (consumer, event_id) VALUES
	('order-confirmations', '00000000-0000-0000-0000-000000000001'),
	('order-confirmations', '00000000-0000-0000-0000-000000000003'),
	('order-confirmations', '00000000-0000-0000-0000-000000000009')`

func TestMigration_KeepsWhatIsNotPublishedAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	pool := open(t, testenv.EmptyPostgres(t))
	to := func(version uint) {
		t.Helper()
		files, err := iofs.New(db.FS, "migrations")
		require.NoError(t, err)
		conn := stdlib.OpenDBFromPool(pool)
		defer func() { require.NoError(t, conn.Close()) }()
		driver, err := migratepgx.WithInstance(conn, &migratepgx.Config{MigrationsTable: versionTable})
		require.NoError(t, err)
		m, err := migrate.NewWithInstance("iofs", files, "pgx5", driver)
		require.NoError(t, err)
		require.NoError(t, m.Migrate(version))
		sourceErr, databaseErr := m.Close()
		require.NoError(t, sourceErr)
		require.NoError(t, databaseErr)
	}
	numbers := func(sql string) (n []int32) {
		t.Helper()
		require.NoError(t, pool.QueryRow(t.Context(), "SELECT coalesce(array_agg(n), '{}') FROM ("+sql+") AS found(n)").Scan(&n))
		return n
	}
	to(16)
	_, err := pool.Exec(t.Context(), beforeAppendOnly)
	require.NoError(t, err)

	to(17)
	const number = "right(event_id::text, 1)::int"
	require.Equal(t, []int32{1, 3, 5, 2, 4, 6}, numbers("SELECT "+number+" FROM outbox ORDER BY id"))
	require.Equal(t, []int32{2, 4, 6}, numbers("SELECT "+number+" FROM outbox WHERE id > (SELECT position FROM outbox_cursor) ORDER BY id"))
	require.Equal(t, []int32{1, 3}, numbers("SELECT "+number+" FROM inbox JOIN outbox USING (event_id) WHERE position = id ORDER BY id"),
		"the one that the outbox has forgotten is forgotten, too")
	store := NewOutbox(pool)
	progress, err := store.AdvanceGroup(t.Context(), orderConfirmations, 100)
	require.NoError(t, err)
	require.EqualValues(t, 2, progress.Cursor)
	missing, err := store.Missing(t.Context(), orderConfirmations, progress.Cursor, 3, 100)
	require.NoError(t, err)
	require.Len(t, missing, 1, "published, and without an effect")

	to(16)
	require.Equal(t, []int32{1, 3, 5}, numbers("SELECT "+number+" FROM outbox WHERE published_at IS NOT NULL ORDER BY id"))
	require.Equal(t, []int32{1, 3}, numbers("SELECT "+number+" FROM inbox WHERE consumer = 'order-confirmations' ORDER BY event_id"))
	to(17)
	require.Equal(t, []int32{1, 3, 5, 2, 4, 6}, numbers("SELECT "+number+" FROM outbox ORDER BY id"))
}
