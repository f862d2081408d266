package httpapi

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/authority"
	"github.com/oncepay/oncepay/idempotency/memstore"
	"github.com/oncepay/oncepay/internal/checkout"
)

// TestAnswered_IsKeptInTheStoreWhateverItsStatus: what the authority keeps, the store keeps.
func TestAnswered_IsKeptInTheStoreWhateverItsStatus(t *testing.T) {
	t.Parallel()
	keys := idempotency.New(memstore.New(), idempotency.Always(idempotency.Policy{}), idempotency.WithSharedScope())
	t.Cleanup(keys.Wait)
	handler := keys.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := checkout.Answer{Content: authority.Result{Answer: authority.Answer{Status: http.StatusNotFound}}}
		a, err := answered(r.Context(), given, nil)
		require.NoError(t, err)
		require.NoError(t, a.write(w))
	}))
	for _, replay := range []string{"", "true"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
		r.Header.Set(idempotency.HeaderKey, "key")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		require.Equal(t, http.StatusNotFound, w.Code)
		require.Equal(t, replay, w.Header().Get(idempotency.HeaderReplay))
	}
}
