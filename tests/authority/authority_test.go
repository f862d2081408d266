// Package authority_test runs the suite of idempotency/authority on a real PostgreSQL, and what
// is true of its own table alone.
package authority_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
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

// TestAuthority_PassesTheSuiteInEachQueryMode of pgx, and in those that need no session behind a
// pooler that keeps none.
func TestAuthority_PassesTheSuiteInEachQueryMode(t *testing.T) {
	t.Parallel()
	testenv.EachQueryMode(t, func(t *testing.T, via func(string) string) {
		pool, err := pgxpool.New(t.Context(), via(testenv.EmptyPostgres(t))+"&pool_max_conns=16")
		require.NoError(t, err)
		t.Cleanup(pool.Close)
		var cases atomic.Int64
		authoritytest.Run(t, func(t *testing.T) authoritytest.Bench {
			table := fmt.Sprintf("keys_%d", cases.Add(1))
			require.NoError(t, authority.Migrate(t.Context(), pool, authority.WithTable(table, authority.DefaultScope)))
			return authoritytest.Bench{Pool: pool, Table: table}
		})
	})
}

// TestAuthority_PassesTheSuiteOnATableOfItsUser has other names and types of columns.
func TestAuthority_PassesTheSuiteOnATableOfItsUser(t *testing.T) {
	t.Parallel()
	authoritytest.Run(t, func(t *testing.T) authoritytest.Bench {
		ctx, pool := open(t)
		_, err := pool.Exec(ctx, authority.SQL("shop_keys", "tenant", "uuid")+
			"ALTER TABLE shop_keys ALTER COLUMN resource_id TYPE uuid USING resource_id::uuid")
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

// TestSQL_IsThatOfMigrate makes the table by the printed script, and lets Migrate meet it.
func TestSQL_IsThatOfMigrate(t *testing.T) {
	t.Parallel()
	ctx, pool := open(t)
	for range 2 {
		_, err := pool.Exec(ctx, authority.SQL("booking_keys", "account_id", "bigint"))
		require.NoError(t, err)
	}
	table := authority.WithTable("booking_keys", "account_id")
	require.NoError(t, authority.Migrate(ctx, pool, table))
	once := claim("k")
	once.Scope = "42"
	_, err := authority.New(pool, table).Once(ctx, once, done(0))
	require.NoError(t, err)
	var account int64
	require.NoError(t, pool.QueryRow(ctx, "SELECT account_id FROM booking_keys").Scan(&account))
	require.EqualValues(t, 42, account)

	named := authority.WithTable("shop_keys", "tenant")
	require.NoError(t, authority.Migrate(ctx, pool, named))
	_, err = authority.New(pool, named).Once(ctx, once, done(0))
	require.NoError(t, err)
}

// dbtx is what sqlc generates of a package that has a :copyfrom and a :batch query.
type dbtx interface {
	Exec(context.Context, string, ...any) (pgconn.CommandTag, error)
	Query(context.Context, string, ...any) (pgx.Rows, error)
	QueryRow(context.Context, string, ...any) pgx.Row
	CopyFrom(ctx context.Context, tableName pgx.Identifier, columnNames []string, rowSrc pgx.CopyFromSource) (int64, error)
	SendBatch(context.Context, *pgx.Batch) pgx.BatchResults
}

// TestTx_CopiesInTheTransaction commits rows with the key, and none without it.
func TestTx_CopiesInTheTransaction(t *testing.T) {
	t.Parallel()
	ctx, pool := open(t)
	require.NoError(t, authority.Migrate(ctx, pool))
	_, err := pool.Exec(ctx, "CREATE TABLE things (id integer)")
	require.NoError(t, err)
	failed := errors.New("failed")
	for key, wanted := range map[string]error{"fails": failed, "succeeds": nil} {
		_, err := authority.New(pool).Once(ctx, claim(key), func(ctx context.Context, tx *authority.Tx) (authority.Outcome, error) {
			var db dbtx = tx
			db.SendBatch(ctx, queued("INSERT INTO things VALUES (1)"))
			copied, err := db.CopyFrom(ctx, pgx.Identifier{"things"}, []string{"id"}, pgx.CopyFromRows([][]any{{2}, {3}}))
			require.NoError(t, err)
			require.EqualValues(t, 2, copied)
			return authority.Done(authority.Answer{Status: 201}), wanted
		})
		require.ErrorIs(t, err, wanted)
	}
	var sum int
	require.NoError(t, pool.QueryRow(ctx, "SELECT sum(id) FROM things").Scan(&sum))
	require.Equal(t, 6, sum)
}

func queued(sql string) *pgx.Batch {
	batch := &pgx.Batch{}
	batch.Queue(sql)
	return batch
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
