package postgres

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/outbox"
	"github.com/oncepay/oncepay/internal/purge"
)

// TestRights_OfAServiceThatCannotChangeTheSchema: its user is not the one that migrates.
func TestRights_OfAServiceThatCannotChangeTheSchema(t *testing.T) {
	t.Parallel()
	b := setup(t)
	service := serviceRole(b)
	_, err := b.pool.Exec(b.ctx, "DELETE FROM timelines")
	require.NoError(t, err)
	limited, err := url.Parse(b.pool.Config().ConnString())
	require.NoError(t, err)
	limited.User = url.UserPassword(service, "p")

	b.Store = NewStore(open(t, limited.String()), Options{UnpaidFor: time.Minute}) // it begins a timeline, and moves the positions
	customer := b.customer().ID
	b.topUp(customer, 10_000)
	b.pay(b.order(customer, 1), checkout.MethodWallet)
	paid := b.pay(b.order(customer, 1), checkout.MethodCard)
	wanted := checkout.NewRefund{PaymentID: paid.ID}
	_, err = b.CardRefunds().Begin(b.ctx, b.call("refund", wanted), wanted)
	require.NoError(t, err)
	unpaid := b.order(customer, 1)
	b.timeUp(unpaid)
	b.expire(10, 1)
	b.keepUntil("pay-"+paid.OrderID.String(), -time.Hour)
	n, err := purge.New(b.Store, purge.Options{}).RunOnce(b.ctx)
	require.NoError(t, err)
	require.Positive(t, n)
	require.Equal(t, 1, b.count("timelines"))

	events, relay := NewOutbox(b.pool), newID()
	from, err := events.Lease(b.ctx, relay, time.Minute)
	require.NoError(t, err)
	waiting, last, err := events.Read(b.ctx, from, 100)
	require.NoError(t, err)
	require.NotEmpty(t, waiting)
	require.NoError(t, events.Advance(b.ctx, relay, from, last, time.Minute))
	for _, group := range NewInbox(b.pool, false).Subscriptions() {
		of := slices.DeleteFunc(slices.Clone(waiting), func(e outbox.Event) bool { return !slices.Contains(group.Types, e.Type) })
		_, err := group.Handle(b.ctx, of)
		require.NoError(t, err)
		_, err = events.AdvanceGroup(b.ctx, group.Group, 100)
		require.NoError(t, err)
	}

	_, err = b.pool.Exec(b.ctx, "REVOKE CREATE ON SCHEMA public FROM PUBLIC; REVOKE TEMPORARY ON DATABASE "+b.pool.Config().ConnConfig.Database+" FROM PUBLIC")
	require.NoError(t, err, "a role that owns neither migrates all the same")
	for statement, refusal := range map[string]string{
		"ALTER TABLE orders ADD COLUMN more text":                                     "must be owner",
		"CREATE TABLE more ()":                                                        "permission denied",
		"CREATE TEMPORARY TABLE ledger_entries ()":                                    "permission denied",
		"DROP TRIGGER append_only ON ledger_entries":                                  "must be owner",
		"SET session_replication_role = replica":                                      "permission denied",
		"UPDATE ledger_entries SET amount = amount + 1":                               "permission denied",
		"DELETE FROM ledger_entries":                                                  "permission denied",
		"TRUNCATE ledger_entries":                                                     "permission denied",
		"UPDATE api_keys SET account_id = account_id":                                 "permission denied",
		"DELETE FROM orders":                                                          "permission denied",
		"UPDATE schema_migrations SET version = version - 1":                          "permission denied",
		"INSERT INTO accounts (id, name) VALUES ('" + newID().String() + "', 'mine')": "permission denied",
	} {
		_, err := b.pool.Exec(b.ctx, statement)
		require.ErrorContains(t, err, refusal, statement)
	}
}

// serviceRole makes a role as migrate does. Roles belong to the whole server, so each test has its
// own.
func serviceRole(b *bundle) (role string) {
	b.t.Helper()
	role = "service_" + strings.ReplaceAll(newID().String(), "-", "")
	require.NoError(b.t, Grant(b.ctx, b.pool, role, "p"))
	return role
}

// may is all that the service's role may do, by letters as psql prints them: read, append (insert),
// write (update), delete. What is not here it may not touch.
var may = map[string]string{
	"schema_migrations": "r", "accounts": "r", "api_keys": "r", "api_keys_version": "r",
	"ledger_transactions": "ra", "ledger_entries": "ra",
	"order_items": "ra", "top_ups": "ra", "order_confirmations": "raw", "warehouse_notices": "ra",
	"customers": "raw", "wallets": "raw", "products": "raw", "orders": "raw", "payments": "raw", "refunds": "raw",
	"timelines": "raw", "outbox_cursor": "raw", "consumer_cursors": "raw",
	"idempotency_keys": "rawd", "idempotency_records": "rawd", "provider_events": "rawd",
	"outbox": "rawd", "inbox": "rawd", "dead_letters": "rawd",
}

// TestRights_OfEveryTable also walks sequences, columns and functions: no right comes by another
// way.
func TestRights_OfEveryTable(t *testing.T) {
	t.Parallel()
	b := setup(t)
	role := serviceRole(b)
	_, err := b.pool.Exec(b.ctx, "GRANT ALL ON ALL TABLES IN SCHEMA public TO "+role+"; GRANT CREATE ON SCHEMA public TO PUBLIC") // an operator's mistake, which the next migration mends
	require.NoError(t, err)
	require.NoError(t, Grant(b.ctx, b.pool, role, ""))
	rows, err := b.pool.Query(b.ctx, `
		SELECT relname, concat_ws('', CASE WHEN has_any_column_privilege($1, c.oid, 'SELECT') THEN 'r' END,
			CASE WHEN has_any_column_privilege($1, c.oid, 'INSERT') THEN 'a' END,
			CASE WHEN has_any_column_privilege($1, c.oid, 'UPDATE') THEN 'w' END,
			CASE WHEN has_table_privilege($1, c.oid, 'DELETE') THEN 'd' END,
			CASE WHEN has_table_privilege($1, c.oid, 'TRUNCATE') THEN 'D' END,
			CASE WHEN has_table_privilege($1, c.oid, 'TRIGGER') THEN 't' END,
			CASE WHEN has_any_column_privilege($1, c.oid, 'REFERENCES') THEN 'x' END)
		FROM pg_class c WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f')`, role)
	require.NoError(t, err)
	has := map[string]string{}
	var table, rights string
	_, err = pgx.ForEachRow(rows, []any{&table, &rights}, func() error { has[table] = rights; return nil })
	require.NoError(t, err)
	require.Equal(t, may, has, "db/rights.sql has a line for each table")
	for what, query := range map[string]string{
		"a sequence":              "SELECT count(*) FROM pg_sequences WHERE schemaname = 'public' AND sequencename <> 'outbox_id_seq' AND has_sequence_privilege($1, quote_ident(sequencename), 'USAGE, SELECT, UPDATE')",
		"a function as its owner": "SELECT count(*) FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prosecdef AND $1 <> ''",
		"the schema":              "SELECT has_schema_privilege($1, 'public', 'CREATE')::int",
		"another role":            "SELECT count(*) FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.member WHERE r.rolname = $1",
		"more than a login":       "SELECT count(*) FROM pg_roles WHERE rolname = $1 AND (rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls)",
	} {
		var n int
		require.NoError(t, b.pool.QueryRow(b.ctx, query, role).Scan(&n))
		require.Zero(t, n, what)
	}
}

// TestPowers_AreThoseThatARoleThatServesMustNotHave: each names one, and the service's has none.
func TestPowers_AreThoseThatARoleThatServesMustNotHave(t *testing.T) {
	t.Parallel()
	b := setup(t)
	powers := func(role string) string {
		limited, err := url.Parse(b.pool.Config().ConnString())
		require.NoError(t, err)
		limited.User = url.UserPassword(role, "p")
		found, err := Powers(b.ctx, open(t, limited.String()))
		require.NoError(t, err)
		return found
	}
	require.Empty(t, powers(serviceRole(b)))
	ourselves, database := b.pool.Config().ConnConfig.User, b.pool.Config().ConnConfig.Database
	for statement, want := range map[string]string{
		"ALTER ROLE %s CREATEROLE":                                     "may create roles",
		"GRANT CREATE ON SCHEMA public TO %s":                          "may create in the schema",
		"GRANT CREATE ON DATABASE " + database + " TO %s":              "may create schemas",
		"ALTER ROLE %[1]s NOINHERIT; GRANT " + ourselves + " TO %[1]s": "belongs to a role that does",
		"GRANT pg_write_all_data TO %s":                                "may change the ledger",
		"GRANT UPDATE ON ledger_entries TO %s":                         "may change the ledger",
		"GRANT INSERT ON api_keys TO %s":                               "may change API keys",
	} {
		role := serviceRole(b)
		_, err := b.pool.Exec(b.ctx, fmt.Sprintf(statement, role))
		require.NoError(t, err, statement)
		require.Contains(t, powers(role), want, statement)
	}
}

// TestLedger_IsAppendOnly for the role that owns it, too: the balance alone lets a whole
// transaction disappear.
func TestLedger_IsAppendOnly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.topUp(b.customer().ID, 500)
	for _, statement := range []string{"UPDATE ledger_entries SET currency = 'EUR'", "DELETE FROM ledger_entries", "DELETE FROM ledger_transactions",
		"UPDATE ledger_transactions SET kind = kind", "TRUNCATE ledger_entries, ledger_transactions"} {
		_, err := b.pool.Exec(b.ctx, statement)
		require.ErrorContains(t, err, "are never changed or deleted", statement)
	}
	require.Equal(t, 2, b.count("ledger_entries"))
}

// TestLedger_BalancesBesideATemporaryTable of the same name. The owner may make one.
func TestLedger_BalancesBesideATemporaryTable(t *testing.T) {
	t.Parallel()
	b := setup(t)
	err := pgx.BeginFunc(b.ctx, b.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(b.ctx, `CREATE TEMPORARY TABLE ledger_entries (LIKE public.ledger_entries) ON COMMIT DROP;
			WITH made AS (INSERT INTO public.ledger_transactions (id, account_id, kind, subject)
				SELECT gen_random_uuid(), id, 'gift', gen_random_uuid() FROM accounts LIMIT 1 RETURNING id)
			INSERT INTO public.ledger_entries SELECT id, 0, 'sales', -1000000, 'USD' FROM made`)
		return err
	})
	require.ErrorContains(t, err, "do not sum to zero")
	require.Zero(t, b.count("ledger_entries"))
}

// TestFunctions_LookInTheSchemaFirst: a caller's search_path and temporary tables change none.
func TestFunctions_LookInTheSchemaFirst(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const others = "pg_proc WHERE pronamespace = 'public'::regnamespace AND NOT coalesce('search_path=pg_catalog, public, pg_temp' = ANY (proconfig), false)"
	require.Zero(t, b.count(others))
	require.NotZero(t, b.count("pg_proc WHERE pronamespace = 'public'::regnamespace"))
}

func TestGrant_RefusesARoleThatIsNotThereOrMigrates(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.ErrorContains(t, Grant(b.ctx, b.pool, "nobody_of_this_name", ""), "set DATABASE_SERVICE_PASSWORD")
	require.ErrorContains(t, Grant(b.ctx, b.pool, b.pool.Config().ConnConfig.User, ""), "the role that migrates")
}
