package pgstore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/pgstore"
	"github.com/oncepay/oncepay/idempotency/storetest"
	"github.com/oncepay/oncepay/internal/testenv"
)

// patience bounds waits for what should come soon.
const patience = 20 * time.Second

func TestWatch_ReachesAnotherReplica(t *testing.T) {
	t.Parallel()
	server := testenv.EmptyPostgres(t)
	storetest.RunReplicas(t, func(t *testing.T) idempotency.Store {
		pool, _ := open(t, server)
		require.NoError(t, pgstore.Migrate(t.Context(), pool))
		store := newStore(pool)
		t.Cleanup(store.Close)
		return store
	})
}

// TestWatch_SurvivesALostConnection wakes those who wait, who may have missed
// something, and hears again.
func TestWatch_SurvivesALostConnection(t *testing.T) {
	t.Parallel()
	way, detour := through(t, testenv.EmptyPostgres(t))
	pool, _ := open(t, detour)
	require.NoError(t, pgstore.Migrate(t.Context(), pool))
	store := newStore(pool)
	t.Cleanup(store.Close)
	changed, stop := store.Watch("acct_1", "key")
	defer stop()
	storetest.RequireChange(t, changed)
	way.Cut()
	storetest.RequireChange(t, changed)
	record := pending("key")
	require.Eventually(t, func() bool {
		existing, err := store.Acquire(t.Context(), record, time.Minute)
		return err == nil && existing == nil
	}, patience, 10*time.Millisecond)
	require.NoError(t, store.Release(t.Context(), record))
	storetest.RequireChange(t, changed)
}

// TestWatch_ReplacesASilentConnection loses the answer to the first question whether
// the connection is alive, and all that would have come over it.
func TestWatch_ReplacesASilentConnection(t *testing.T) {
	t.Parallel()
	way, detour := through(t, testenv.EmptyPostgres(t))
	pool, _ := open(t, detour)
	require.NoError(t, pgstore.Migrate(t.Context(), pool))
	store := pgstore.New(pool, pgstore.WithPingInterval(500*time.Millisecond))
	t.Cleanup(store.Close)
	changed, stop := store.Watch("acct_1", "key")
	defer stop()
	storetest.RequireChange(t, changed)
	way.FailNext("-- ping", testenv.Fault{Lose: true})
	storetest.RequireChange(t, changed)
}

func TestWatch_TakesNoPlaceInThePool(t *testing.T) {
	t.Parallel()
	pool, _ := open(t, testenv.EmptyPostgres(t)+"&pool_max_conns=1")
	require.NoError(t, pgstore.Migrate(t.Context(), pool))
	store := newStore(pool)
	t.Cleanup(store.Close)
	changed, stop := store.Watch("acct_1", "key")
	defer stop()
	storetest.RequireChange(t, changed)
	require.NoError(t, store.Release(t.Context(), held(t, store, "key", time.Minute)))
	storetest.RequireChange(t, changed)
}

// TestWithoutNotify_SendsNoNotification listens itself: notifications come in the order of commits.
func TestWithoutNotify_SendsNoNotification(t *testing.T) {
	t.Parallel()
	pool := migrated(t)
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	_, err = conn.Exec(t.Context(), "LISTEN idempotency_records")
	require.NoError(t, err)

	quiet := newStore(pool, pgstore.WithoutNotify())
	require.NoError(t, quiet.Release(t.Context(), held(t, quiet, "released", time.Minute)))
	require.NoError(t, quiet.Complete(t.Context(), done(held(t, quiet, "completed", time.Minute)), time.Minute))
	_, err = pool.Exec(t.Context(), "NOTIFY idempotency_records, 'the first'")
	require.NoError(t, err)
	notification, err := conn.Conn().WaitForNotification(t.Context())
	require.NoError(t, err)
	require.Equal(t, "the first", notification.Payload)

	changed, stop := quiet.Watch("acct_1", "key")
	defer stop()
	quiet.Close()
	require.Empty(t, changed, "nor does it listen")
}

func TestClose_ClosesTheConnection(t *testing.T) {
	t.Parallel()
	pool := migrated(t)
	store := newStore(pool)
	changed, stop := store.Watch("acct_1", "key")
	defer stop()
	storetest.RequireChange(t, changed)
	store.Close()
	store.Close()
	_, stop = store.Watch("acct_1", "key")
	stop()
	require.NoError(t, store.Release(t.Context(), held(t, store, "key", time.Minute)), "all else goes on")
	newStore(pool).Close()
}
