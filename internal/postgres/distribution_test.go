package postgres

import (
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/testenv"
)

// undistributed are the tables that stay whole if PostgreSQL is distributed by account, with the
// reason. All others have account_id.
var undistributed = map[string]string{
	"accounts":            "reference: rows of all others belong to its rows",
	"api_keys":            "reference: it is read before the account is known",
	"api_keys_version":    "reference: its one row is written with api_keys",
	"outbox_cursor":       "local: one relay for each worker",
	"consumer_cursors":    "local: beside the outbox of its worker",
	"inbox":               "local: beside the outbox of its worker, by the outbox's positions",
	"dead_letters":        "local: beside the outbox of its worker, by the outbox's positions",
	"timelines":           "local: a history of one server",
	"provider_events":     "reference: an event names a payment, not an account",
	"idempotency_records": "distributed by scope, which is the account: no transaction has another table in it",
	"schema_migrations":   "reference: the migrations' own",
}

// withoutAccount are what a distribution by account_id has to change: tables and keys without the
// column.
var withoutAccount = struct{ tables, keys, references []string }{
	tables: []string{"ledger_entries"},
	keys: []string{"customers_pkey", "idempotency_keys_begun", "ledger_entries_pkey", "ledger_transactions_pkey", "ledger_transactions_subject_key",
		"order_confirmations_pkey", "order_items_pkey", "outbox_pkey", "payments_live", "payments_pkey", "refunds_pkey", "top_ups_pkey",
		"wallets_pkey", "warehouse_notices_pkey"},
	references: []string{"ledger_entries_transaction_id_fkey"},
}

const (
	tablesSQL = `SELECT relname::text FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND NOT relname = ANY ($1)`
	accountOf = `SELECT attnum FROM pg_attribute WHERE attrelid = c.oid AND attname = 'account_id'`
)

// TestDistribution_ByAccountNeedsWhatThePageNames: Citus can check a unique key or a foreign key
// only within a shard, so it must have the column that distributes. A table that is not distributed
// has a reason, and a key without the column is named in docs/capacity.md.
func TestDistribution_ByAccountNeedsWhatThePageNames(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), testenv.Postgres(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close(t.Context())) })
	whole := make([]string, 0, len(undistributed))
	for name, reason := range undistributed {
		require.NotEmpty(t, reason, name)
		whole = append(whole, name)
	}
	names := func(sql string) []string {
		rows, err := conn.Query(t.Context(), sql, whole)
		require.NoError(t, err)
		found, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		return found
	}
	require.ElementsMatch(t, withoutAccount.tables, names(`SELECT relname::text FROM pg_class c WHERE relname IN (`+tablesSQL+`)
		AND relnamespace = 'public'::regnamespace AND NOT EXISTS (`+accountOf+`)`), "tables")
	require.ElementsMatch(t, withoutAccount.keys, names(`SELECT i.indexrelid::regclass::text FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
		WHERE i.indisunique AND c.relname IN (`+tablesSQL+`) AND NOT EXISTS (`+accountOf+` AND attnum = ANY (i.indkey::int2[]))`), "unique keys without account_id: add it, or name the key here and in docs/capacity.md")
	require.ElementsMatch(t, withoutAccount.references, names(`SELECT f.conname::text FROM pg_constraint f JOIN pg_class c ON c.oid = f.conrelid
		JOIN pg_class r ON r.oid = f.confrelid
		WHERE f.contype = 'f' AND c.relname IN (`+tablesSQL+`) AND NOT r.relname = ANY ($1) AND NOT EXISTS (`+accountOf+` AND attnum = ANY (f.conkey))`), "foreign keys without account_id: add it, or name the key here and in docs/capacity.md")

	page, err := os.ReadFile("../../docs/capacity.md")
	require.NoError(t, err)
	for name := range undistributed {
		require.Contains(t, string(page), "`"+name+"`")
	}
	for _, list := range [][]string{withoutAccount.tables, withoutAccount.keys, withoutAccount.references} {
		for _, name := range list {
			require.Contains(t, string(page), "`"+name+"`")
		}
	}
}
