package redisstore_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/redisstore"
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
	server := testenv.Redis(t)
	finish, running := make(chan struct{}), make(chan struct{}, 1)
	replica := func() *idempotency.Middleware {
		store := closing(t, redisstore.New(open(t, server)))
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

// TestWatch_SurvivesAnOutage wakes those who wait, who may have missed
// something, and hears again.
func TestWatch_SurvivesAnOutage(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	store, record := closing(t, redisstore.New(open(t, server.URL))), pending("key")
	changed, stop := store.Watch(record.Scope, record.Key)
	defer stop()
	requireChange(t, changed)
	server.Stop()
	server.Start()
	requireChange(t, changed)
	require.Eventually(t, func() bool {
		existing, err := store.Acquire(t.Context(), record, time.Minute)
		return err == nil && existing == nil
	}, patience, 10*time.Millisecond)
	require.NoError(t, store.Release(t.Context(), record))
	requireChange(t, changed)
}

func TestWatch_BeginsDuringAnOutage(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	server.Stop()
	store := closing(t, redisstore.New(open(t, server.URL)))
	began := time.Now()
	changed, stop := store.Watch("acct_1", "key")
	defer stop()
	require.Less(t, time.Since(began), redisstore.DialTimeout, "it doesn't block")
	server.Start()
	requireChange(t, changed)
}

func TestClose_EndsTheSubscription(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	unwatched := redisstore.New(open(t, server))
	require.NoError(t, unwatched.Close())
	require.NoError(t, unwatched.Close())

	store := redisstore.New(open(t, server))
	changed, stop := store.Watch("acct_1", "key")
	defer stop()
	requireChange(t, changed)
	require.NoError(t, store.Close())
	require.NoError(t, store.Close())
	_, stop = store.Watch("acct_1", "key")
	stop()
	requireServed(t, open(t, server))
}

// TestWatch_IsOptional may not publish or subscribe, as is an ACL user's
// default since Redis 7: all steps succeed nevertheless.
func TestWatch_IsOptional(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	admin := open(t, server.URL)
	require.NoError(t, admin.Do(t.Context(), "ACL", "SETUSER", "shop", "on", ">secret", "~idempotency:*", "resetchannels", "+@all").Err())
	u, err := url.Parse(server.URL)
	require.NoError(t, err)
	u.User = url.UserPassword("shop", "secret")
	store := closing(t, redisstore.New(open(t, u.String())))
	_, stop := store.Watch("acct_1", "complete")
	defer stop()
	for name, step := range steps {
		require.NoError(t, step.prepared(t, store, name), name)
	}
}
