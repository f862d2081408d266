package app

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency/memstore"
)

func TestOptions_ReplaceFrontAndRecords(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	records := memstore.New()
	front := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Front", "seen")
			next.ServeHTTP(w, r)
		})
	}
	r := serveSeeded(t, cfg, WithFront(front), WithRecords(records))
	require.Equal(t, "seen", r.call(http.MethodGet, "/v1/orders", "", "").header.Get("X-Front"))
	r.placeOrder()
	kept, err := r.servers.redis.Keys(t.Context(), "idempotency:*:order-*").Result()
	require.NoError(t, err)
	require.Empty(t, kept, "the records are not in Redis")
}
