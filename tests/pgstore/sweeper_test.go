package pgstore_test

import (
	"bytes"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency/pgstore"
	"github.com/oncepay/oncepay/internal/testenv"
)

func count(t *testing.T, pool *pgxpool.Pool) (n int) {
	t.Helper()
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT count(*) FROM idempotency_records`).Scan(&n))
	return n
}

// age has the lifetimes of all records but some end.
func age(t *testing.T, pool *pgxpool.Pool, but string) {
	t.Helper()
	_, err := pool.Exec(t.Context(), `UPDATE idempotency_records SET expires_at = clock_timestamp() WHERE key <> $1`, but)
	require.NoError(t, err)
}

func TestSweep_DeletesAllExpiredInBatches(t *testing.T) {
	t.Parallel()
	pool, wire := open(t, testenv.EmptyPostgres(t))
	require.NoError(t, pgstore.Migrate(t.Context(), pool))
	store := newStore(pool)
	held(t, store, "live", time.Hour)
	_, err := pool.Exec(t.Context(), `INSERT INTO idempotency_records (scope, key, status, fingerprint, owner, created_at, expires_at)
		SELECT 'acct_1', n, 'InProgress', decode(repeat('00', 32), 'hex'), repeat('0', 32), now(), now() FROM generate_series(1, 1200) n`)
	require.NoError(t, err)
	wire.drain()
	removed, err := store.Sweep(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1200, removed)
	require.Equal(t, 3, wire.drain(), "500, 500 and 200 rows")
	require.Equal(t, 1, count(t, pool), "the live one")
}

// TestSweep_SkipsATakeover holds an expired row's lock, as a takeover does
// until it commits.
func TestSweep_SkipsATakeover(t *testing.T) {
	t.Parallel()
	pool := migrated(t)
	store := newStore(pool)
	held(t, store, "taken over", time.Hour)
	held(t, store, "expired", time.Hour)
	age(t, pool, "")
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT FROM idempotency_records WHERE key = 'taken over' FOR UPDATE`)
	require.NoError(t, err)
	removed, err := store.Sweep(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, removed)
	require.NoError(t, tx.Commit(t.Context()))
}

func TestSweeper_SweepsUntilItIsStopped(t *testing.T) {
	t.Parallel()
	pool := migrated(t)
	store := newStore(pool)
	held(t, store, "key", time.Hour)
	age(t, pool, "")
	sweeper := pgstore.NewSweeper(store, pgstore.WithInterval(5*time.Millisecond))
	sweeper.Stop() // it is not running
	for range 2 {
		sweeper.Start()
		sweeper.Start()
		require.Eventually(t, func() bool { return count(t, pool) == 0 }, 20*time.Second, 5*time.Millisecond)
		sweeper.Stop()
		sweeper.Stop()
		held(t, store, "key", time.Hour)
		age(t, pool, "")
	}
	require.Equal(t, 1, count(t, pool), "it is stopped")
}

func TestSweeper_LogsFailures(t *testing.T) {
	t.Parallel()
	pool, _ := open(t, testenv.EmptyPostgres(t)) // without a table
	var said lockedBuffer
	sweeper := pgstore.NewSweeper(newStore(pool), pgstore.WithInterval(5*time.Millisecond),
		pgstore.WithSweeperLogger(slog.New(slog.NewTextHandler(&said, nil))))
	sweeper.Start()
	defer sweeper.Stop()
	require.Eventually(t, func() bool { return bytes.Contains(said.bytes(), []byte("sweeping failed")) }, 20*time.Second, 5*time.Millisecond)
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.b.Bytes())
}
