package pgstore_test

import (
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency/pgstore"
	"github.com/oncepay/oncepay/internal/testenv"
)

func TestMigrate_RunsConcurrently(t *testing.T) {
	t.Parallel()
	pool, _ := open(t, testenv.EmptyPostgres(t))
	errs := make([]error, 16)
	var running sync.WaitGroup
	for i := range errs {
		running.Go(func() { errs[i] = pgstore.Migrate(t.Context(), pool) })
	}
	running.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
}

// TestSchema_IsThatOfTheService compares what they make with what
// Migrate makes.
func TestSchema_IsThatOfTheService(t *testing.T) {
	t.Parallel()
	service, _ := open(t, testenv.Postgres(t))
	want := shape(t, migrated(t))
	require.Len(t, want, 12+5+2, "columns, constraints, indexes")
	require.Equal(t, want, shape(t, service))
}

// shape describes the table's columns, constraints and indexes.
func shape(t *testing.T, pool *pgxpool.Pool) []string {
	t.Helper()
	rows, err := pool.Query(t.Context(), `
		SELECT concat_ws(' ', column_name, data_type, collation_name, is_nullable, column_default) AS part
		FROM information_schema.columns WHERE table_name = 'idempotency_records'
		UNION ALL
		SELECT conname || ' ' || pg_get_constraintdef(oid) FROM pg_constraint
		WHERE conrelid = 'idempotency_records'::regclass AND contype <> 'n'
		UNION ALL
		SELECT indexdef FROM pg_indexes WHERE tablename = 'idempotency_records'
		ORDER BY part`)
	require.NoError(t, err)
	parts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return parts
}
