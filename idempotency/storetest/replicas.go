package storetest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
)

// RunReplicas is the suite for stores that are an [idempotency.Watcher]: a change at one replica is
// seen at another. connect is called once for each replica. It returns a store with a connection of
// its own to the same data.
func RunReplicas(t *testing.T, connect func(t *testing.T) idempotency.Store) {
	t.Helper()
	t.Run("a watch receives a completion at another replica", func(t *testing.T) {
		t.Parallel()
		scope := "storetest-" + string(idempotency.NewOwner())
		here, there := &bench{Bench{Store: connect(t)}, scope}, &bench{Bench{Store: connect(t)}, scope}
		pending := here.held(t, "key", long)
		changed := there.watched(t, pending)
		require.NoError(t, here.Store.Complete(t.Context(), done(pending, "answer"), long))
		RequireChange(t, changed)
		require.Equal(t, "answer", string(there.look(t, "key").Response.Body))
	})
	t.Run("a request waits for the answer of another replica", func(t *testing.T) {
		t.Parallel()
		waitAtAnotherReplica(t, connect)
	})
}

func waitAtAnotherReplica(t *testing.T, connect func(t *testing.T) idempotency.Store) {
	t.Helper()
	finish, running := make(chan struct{}), make(chan struct{}, 1)
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		running <- struct{}{}
		<-finish
		w.WriteHeader(http.StatusCreated)
	})
	replica := func() *idempotency.Middleware {
		return idempotency.New(connect(t), idempotency.Always(idempotency.Policy{Wait: patience}), idempotency.WithSharedScope())
	}
	key := "replicas-" + string(idempotency.NewOwner())
	api1, api2 := replica(), replica()
	first := post(t, api1.Handler(handler), key)
	<-running
	second := post(t, api2.Handler(handler), key)
	require.Eventually(t, func() bool { return api2.Waiting() == 1 }, patience, pollEvery)
	close(finish)
	require.Empty(t, (<-first).Header().Get(idempotency.HeaderReplay))
	w := <-second
	require.Equal(t, http.StatusCreated, w.Code)
	require.Equal(t, "true", w.Header().Get(idempotency.HeaderReplay))
}

// post sends a request and returns where its answer will be.
func post(t *testing.T, to http.Handler, key string) <-chan *httptest.ResponseRecorder {
	t.Helper()
	answer := make(chan *httptest.ResponseRecorder, 1)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(`{}`))
	r.Header.Set(idempotency.HeaderKey, key)
	go func() {
		w := httptest.NewRecorder()
		to.ServeHTTP(w, r)
		answer <- w
	}()
	return answer
}
