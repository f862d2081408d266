package idempotency_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/memstore"
)

// TestMiddleware_AllocatesLittle counts allocations per request besides those of the handler
// and of net/http, on a store in memory that encodes and decodes records like Redis's. It runs
// alone: allocations of other tests would be counted.
func TestMiddleware_AllocatesLittle(t *testing.T) { //nolint:paralleltest // see above
	policy := idempotency.Policy{ExcludedFields: []string{"client_timestamp"}}
	handler := idempotency.New(memstore.New(), idempotency.Always(policy), idempotency.WithSharedScope()).Handler(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }))
	bare := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	key := 0
	perRequest := func(h http.Handler, nextKey func() string) float64 {
		return testing.AllocsPerRun(200, func() {
			r := httptest.NewRequest(http.MethodPost, "/v1/orders", strings.NewReader(order))
			r.Header.Set(idempotency.HeaderKey, nextKey())
			h.ServeHTTP(httptest.NewRecorder(), r)
		})
	}
	replay := func() string { return "replay" }
	newKey := func() string { key++; return strconv.Itoa(key) }
	alone := perRequest(bare, newKey)
	require.LessOrEqual(t, perRequest(handler, newKey)-alone, 64.0, "a new key")
	require.LessOrEqual(t, perRequest(handler, replay)-alone, 33.0, "a replay")
}
