package pgstore_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/pgstore"
	"github.com/oncepay/oncepay/internal/testenv"
)

// patience bounds waits for what should come soon.
const patience = 20 * time.Second

func requireChange(t *testing.T, changed <-chan struct{}) {
	t.Helper()
	select {
	case <-changed:
	case <-time.After(patience):
		require.Fail(t, "nobody was woken")
	}
}

// TestWatch_WakesAWaiterAtAnotherReplica has the second one wait at one replica
// for the first one's answer at the other.
func TestWatch_WakesAWaiterAtAnotherReplica(t *testing.T) {
	t.Parallel()
	server := testenv.EmptyPostgres(t)
	finish, running := make(chan struct{}), make(chan struct{}, 1)
	replica := func() *idempotency.Middleware {
		pool, _ := open(t, server)
		require.NoError(t, pgstore.Migrate(t.Context(), pool))
		store := pgstore.New(pool)
		t.Cleanup(store.Close)
		return idempotency.New(store, idempotency.Always(idempotency.Policy{Wait: patience}), idempotency.WithSharedScope())
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		running <- struct{}{}
		<-finish
		w.WriteHeader(http.StatusCreated)
	})
	send := func(m *idempotency.Middleware) <-chan *httptest.ResponseRecorder {
		answer := make(chan *httptest.ResponseRecorder, 1)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(`{}`))
		r.Header.Set(idempotency.HeaderKey, "key")
		go func() {
			w := httptest.NewRecorder()
			m.Handler(handler).ServeHTTP(w, r)
			answer <- w
		}()
		return answer
	}
	api1, api2 := replica(), replica()
	first := send(api1)
	<-running
	second := send(api2)
	require.Eventually(t, func() bool { return api2.Waiting() == 1 }, patience, time.Millisecond)
	close(finish)
	require.Empty(t, (<-first).Header().Get(idempotency.HeaderReplay))
	w := <-second
	require.Equal(t, http.StatusCreated, w.Code)
	require.Equal(t, "true", w.Header().Get(idempotency.HeaderReplay))
}

// TestWatch_SurvivesALostConnection wakes those who wait, who may have missed
// something, and hears again.
func TestWatch_SurvivesALostConnection(t *testing.T) {
	t.Parallel()
	way, detour := through(t, testenv.EmptyPostgres(t))
	pool, _ := open(t, detour)
	require.NoError(t, pgstore.Migrate(t.Context(), pool))
	store := pgstore.New(pool)
	t.Cleanup(store.Close)
	changed, stop := store.Watch("acct_1", "key")
	defer stop()
	requireChange(t, changed)
	way.Cut()
	requireChange(t, changed)
	record := pending("key")
	require.Eventually(t, func() bool {
		existing, err := store.Acquire(t.Context(), record, time.Minute)
		return err == nil && existing == nil
	}, patience, 10*time.Millisecond)
	require.NoError(t, store.Release(t.Context(), record))
	requireChange(t, changed)
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
	requireChange(t, changed)
	way.FailNext("-- ping", testenv.Fault{Lose: true})
	requireChange(t, changed)
}

func TestWatch_TakesNoPlaceInThePool(t *testing.T) {
	t.Parallel()
	pool, _ := open(t, testenv.EmptyPostgres(t)+"&pool_max_conns=1")
	require.NoError(t, pgstore.Migrate(t.Context(), pool))
	store := pgstore.New(pool)
	t.Cleanup(store.Close)
	changed, stop := store.Watch("acct_1", "key")
	defer stop()
	requireChange(t, changed)
	require.NoError(t, store.Release(t.Context(), held(t, store, "key", time.Minute)))
	requireChange(t, changed)
}

// TestWithoutNotify_NotifiesNobody listens itself: notifications come in the order of commits.
func TestWithoutNotify_NotifiesNobody(t *testing.T) {
	t.Parallel()
	pool := migrated(t)
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	_, err = conn.Exec(t.Context(), "LISTEN idempotency_records")
	require.NoError(t, err)

	quiet := pgstore.New(pool, pgstore.WithoutNotify())
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
	store := pgstore.New(pool)
	changed, stop := store.Watch("acct_1", "key")
	defer stop()
	requireChange(t, changed)
	store.Close()
	store.Close()
	_, stop = store.Watch("acct_1", "key")
	stop()
	require.NoError(t, store.Release(t.Context(), held(t, store, "key", time.Minute)), "all else goes on")
	pgstore.New(pool).Close()
}
