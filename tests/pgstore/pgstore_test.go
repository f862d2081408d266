package pgstore_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/pgstore"
	"github.com/oncepay/oncepay/idempotency/storetest"
	"github.com/oncepay/oncepay/internal/testenv"
)

func TestStore_PassesTheSuite(t *testing.T) {
	t.Parallel()
	pool, _ := open(t, testenv.EmptyPostgres(t))
	require.NoError(t, pgstore.Migrate(t.Context(), pool))
	// The suite keeps thousands of statements waiting for a few connections.
	store := pgstore.New(pool, pgstore.WithAttemptTimeout(time.Minute))
	t.Cleanup(store.Close)
	storetest.Run(t, func(*testing.T) storetest.Bench { return storetest.Bench{Store: store} })
}

// TestStore_PassesTheSuiteInEachQueryMode of pgx, and in those that need no session behind a pooler
// that keeps none.
func TestStore_PassesTheSuiteInEachQueryMode(t *testing.T) {
	t.Parallel()
	testenv.EachQueryMode(t, func(t *testing.T, via func(string) string) {
		pool, _ := open(t, via(testenv.EmptyPostgres(t)))
		require.NoError(t, pgstore.Migrate(t.Context(), pool))
		store := pgstore.New(pool, pgstore.WithAttemptTimeout(time.Minute), pgstore.WithoutNotify())
		unwatched := struct { // a pooler without sessions loses LISTEN
			idempotency.Store
			idempotency.Reader
		}{store, store}
		storetest.Run(t, func(*testing.T) storetest.Bench { return storetest.Bench{Store: unwatched} })
	})
}

// migrated makes a pool on a database of the test's own, with a table.
func migrated(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool, _ := open(t, testenv.EmptyPostgres(t))
	require.NoError(t, pgstore.Migrate(t.Context(), pool))
	return pool
}

func pending(key string) idempotency.Record {
	return idempotency.Record{
		Scope: "acct_1", Key: key, Status: idempotency.StatusInProgress, Owner: idempotency.NewOwner(),
		Fingerprint: idempotency.Fingerprint{1, 2, 3}, CreatedAt: time.Now(),
	}
}

func done(r idempotency.Record) idempotency.Record {
	r.Status = idempotency.StatusCompleted
	r.Response = idempotency.Response{StatusCode: 201, Header: http.Header{"Location": {"/x"}}, Body: []byte(`{"id":1}`)}
	return r
}

func held(t testing.TB, store *pgstore.Store, key string, lease time.Duration) idempotency.Record {
	t.Helper()
	record := pending(key)
	existing, err := store.Acquire(t.Context(), record, lease)
	require.NoError(t, err)
	require.Nil(t, existing)
	return record
}

func TestRecord_IsReadable(t *testing.T) {
	t.Parallel()
	pool := migrated(t)
	store := newStore(pool)
	require.NoError(t, store.Complete(t.Context(), done(held(t, store, "k:1", time.Minute)), 48*time.Hour))
	var status, location, body string
	var lifetime time.Duration
	require.NoError(t, pool.QueryRow(t.Context(), `
		SELECT status, response_headers->'Location'->>0, convert_from(response_body, 'UTF8'), expires_at - clock_timestamp()
		FROM idempotency_records WHERE scope = 'acct_1' AND key = 'k:1'`).Scan(&status, &location, &body, &lifetime))
	require.Equal(t, []string{"Completed", "/x", `{"id":1}`}, []string{status, location, body})
	require.InDelta(t, 48*time.Hour, lifetime, float64(time.Hour))
}

// TestReplay_DoesNotWrite looks at the row's xmax, which even a lock would set.
func TestReplay_DoesNotWrite(t *testing.T) {
	t.Parallel()
	pool := migrated(t)
	store := newStore(pool)
	requireUntouched := func() {
		existing, err := store.Acquire(t.Context(), pending("key"), time.Minute)
		require.NoError(t, err)
		require.NotNil(t, existing)
		var locker string
		require.NoError(t, pool.QueryRow(t.Context(), `SELECT xmax::text FROM idempotency_records`).Scan(&locker))
		require.Equal(t, "0", locker)
	}
	record := held(t, store, "key", time.Minute)
	requireUntouched()
	require.NoError(t, store.Complete(t.Context(), done(record), time.Minute))
	requireUntouched()
}

// TestLease_IsOnTheDatabasesClock has records made by replicas whose clocks are an
// hour off, either way.
func TestLease_IsOnTheDatabasesClock(t *testing.T) {
	t.Parallel()
	store := newStore(migrated(t))
	for name, off := range map[string]time.Duration{"behind": -time.Hour, "ahead": time.Hour} {
		record := pending(name)
		record.CreatedAt = time.Now().Add(off)
		_, err := store.Acquire(t.Context(), record, time.Minute)
		require.NoError(t, err)
		existing, err := store.Acquire(t.Context(), pending(name), time.Minute)
		require.NoError(t, err)
		require.Equal(t, record.Owner, existing.Owner)
		require.WithinDuration(t, time.Now().Add(time.Minute), existing.ExpiresAt, 10*time.Second, "what remains, on our clock")
	}
}

func TestAcquire_ReportsCorruptHeaders(t *testing.T) {
	t.Parallel()
	pool := migrated(t)
	store := newStore(pool)
	require.NoError(t, store.Complete(t.Context(), done(held(t, store, "key", time.Minute)), time.Minute))
	_, err := pool.Exec(t.Context(), `UPDATE idempotency_records SET response_headers = '[1]'`)
	require.NoError(t, err)
	_, err = store.Acquire(t.Context(), pending("key"), time.Minute)
	require.ErrorIs(t, err, idempotency.ErrCorrupt)
	require.NotErrorIs(t, err, idempotency.ErrUnavailable)
}

// TestComplete_KeepsEmptyResponses are finished records all the same.
func TestComplete_KeepsEmptyResponses(t *testing.T) {
	t.Parallel()
	store := newStore(migrated(t))
	record := held(t, store, "key", time.Minute)
	record.Status, record.Response = idempotency.StatusCompleted, idempotency.Response{StatusCode: 204}
	require.NoError(t, store.Complete(t.Context(), record, time.Minute))
	existing, err := store.Acquire(t.Context(), pending("key"), time.Minute)
	require.NoError(t, err)
	require.Equal(t, 204, existing.Response.StatusCode)
}

// TestAcquire_SeesAConcurrentInsert has a rival insert the same key in a transaction
// that commits while our statement waits for it: ours saw nothing, inserted
// nothing, and must look again.
func TestAcquire_SeesAConcurrentInsert(t *testing.T) {
	t.Parallel()
	pool := migrated(t)
	store, rival := newStore(pool), pending("key")
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Commit(context.Background())) }()
	_, err = tx.Exec(t.Context(), `INSERT INTO idempotency_records (scope, key, status, fingerprint, owner, created_at, expires_at)
		VALUES ($1, $2, 'InProgress', $3, $4, now(), now() + interval '1 hour')`,
		rival.Scope, rival.Key, rival.Fingerprint[:], string(rival.Owner))
	require.NoError(t, err)

	met := make(chan *idempotency.Record, 1)
	go func() {
		existing, _ := store.Acquire(context.WithoutCancel(t.Context()), pending("key"), time.Minute)
		met <- existing
	}()
	require.Eventually(t, func() bool {
		var waiting int
		err := pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).
			Scan(&waiting)
		return err == nil && waiting == 1
	}, 20*time.Second, 10*time.Millisecond, "our statement waits for the rival's")
	require.NoError(t, tx.Commit(t.Context()))
	existing := <-met
	require.NotNil(t, existing, "the rival was there first")
	require.Equal(t, rival.Owner, existing.Owner)
	tx, err = pool.Begin(t.Context()) // for the deferred commit
	require.NoError(t, err)
}

func TestWithTable_AcceptsPlainNames(t *testing.T) {
	t.Parallel()
	pool := migrated(t)
	require.NoError(t, pgstore.Migrate(t.Context(), pool, pgstore.WithTable("other_records")))
	ours, others := newStore(pool), newStore(pool, pgstore.WithTable("other_records"))
	held(t, ours, "key", time.Minute)
	record := held(t, others, "key", time.Minute)
	require.NoError(t, others.Extend(t.Context(), record, time.Minute))
	require.NoError(t, others.Complete(t.Context(), done(record), time.Minute))
	for _, name := range []string{"", "Records", "a.b", `a"b`, "a;b", "1a", "a_name_that_is_longer_than_forty_letters_"} {
		require.Panics(t, func() { pgstore.WithTable(name) }, name)
	}
}

func TestNew_PanicsOnNonsense(t *testing.T) {
	t.Parallel()
	pool := migrated(t)
	for name, make := range map[string]func(){
		"no database":  func() { pgstore.New(nil) },
		"no timeout":   func() { pgstore.New(pool, pgstore.WithAttemptTimeout(0)) },
		"no interval":  func() { pgstore.NewSweeper(newStore(pool), pgstore.WithInterval(0)) },
		"no ping":      func() { pgstore.New(pool, pgstore.WithPingInterval(0)) },
		"quoted table": func() { pgstore.WithTable(`"Keys"`) },
	} {
		require.Panics(t, make, name)
	}
}
