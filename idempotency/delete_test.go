package idempotency_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
)

// TestDelete_HasOneEffectAndNoBody: the second DELETE of a thing would find nothing, and answer 404
// to a client whose first answer was lost.
func TestDelete_HasOneEffectAndNoBody(t *testing.T) {
	t.Parallel()
	there := map[string]bool{"/orders/1": true, "/orders/2": true}
	b := setup(t, idempotency.Policy{Required: true, TTL: time.Hour, Deadline: time.Minute}, func(w http.ResponseWriter, r *http.Request) {
		if !there[r.URL.Path] {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		delete(there, r.URL.Path)
		w.WriteHeader(http.StatusNoContent)
	})
	remove := func(path string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodDelete, path, http.NoBody)
		r.Header.Set(idempotency.HeaderKey, "delete-1")
		return b.send(r)
	}
	first, again := remove("/orders/1"), remove("/orders/1")
	require.Equal(t, http.StatusNoContent, first.Code)
	require.Equal(t, http.StatusNoContent, again.Code)
	require.Equal(t, "true", again.Header().Get(idempotency.HeaderReplay))
	require.Empty(t, first.Body.String()+again.Body.String())
	require.Equal(t, 1, b.ran())

	requireProblem(t, remove("/orders/2"), http.StatusUnprocessableEntity, "idempotency_key_reused")
	require.True(t, there["/orders/2"])
}
