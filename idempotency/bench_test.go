package idempotency_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/memstore"
)

const order = `{"customer_id":"cus_1","items":[{"sku":"tee-black","quantity":2},{"sku":"mug-white","quantity":1}],"client_timestamp":"2026-01-01T00:00:00Z"}`

// BenchmarkMiddleware is the cost of one request besides the handler's and the
// network's, on a store in memory.
func BenchmarkMiddleware(b *testing.B) {
	policy := idempotency.Policy{ExcludedFields: []string{"client_timestamp"}}
	handler := idempotency.New(memstore.New(), idempotency.Always(policy), idempotency.WithSharedScope()).Handler(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write([]byte(order))
		}))
	send := func(key string) {
		r := httptest.NewRequest(http.MethodPost, "/v1/orders", strings.NewReader(order))
		r.Header.Set(idempotency.HeaderKey, key)
		handler.ServeHTTP(httptest.NewRecorder(), r)
	}
	b.Run("acquired", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			send(strconv.Itoa(i))
		}
	})
	b.Run("replay", func(b *testing.B) {
		b.ReportAllocs()
		send("replay")
		for b.Loop() {
			send("replay")
		}
	})
}

func BenchmarkFingerprint(b *testing.B) {
	r := httptest.NewRequest(http.MethodPost, "/v1/orders", nil)
	large := "[" + strings.Repeat(order+",", 1000) + order + "]"
	for name, body := range map[string]string{"order": order, "large": large, "raw": strings.ReplaceAll(large, "[", "(")} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				idempotency.FingerprintOf(r, []byte(body), "client_timestamp")
			}
		})
	}
}
