package redisstore_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/redisstore"
	"github.com/oncepay/oncepay/internal/testenv"
)

// BenchmarkMiddleware sends requests from many goroutines to the middleware on a real Redis, and
// reports the CPU of this process per request.
func BenchmarkMiddleware(b *testing.B) {
	store := redisstore.New(open(b, testenv.Redis(b)))
	handler := idempotency.New(store, idempotency.Always(idempotency.Policy{}), idempotency.WithSharedScope()).Handler(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write([]byte(`{"id":"order_1"}`))
		}))
	body := `{"customer_id":"cus_1","items":[{"sku":"tee-black","quantity":2}]}`
	var key atomic.Int64
	for _, goroutines := range []int{1, 32, 128} {
		for name, nextKey := range map[string]func() string{
			"new":    func() string { return fmt.Sprint("key-", goroutines, "-", key.Add(1)) },
			"replay": func() string { return "replay" },
		} {
			b.Run(fmt.Sprintf("%s-%d", name, goroutines), func(b *testing.B) {
				send := func() {
					r := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader(body))
					r.Header.Set(idempotency.HeaderKey, nextKey())
					w := httptest.NewRecorder()
					handler.ServeHTTP(w, r)
					require.Equal(b, http.StatusCreated, w.Code)
				}
				send()
				b.SetParallelism((goroutines + 1) / 2)
				b.ReportAllocs()
				b.ResetTimer()
				before := cpu(b)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						send()
					}
				})
				b.ReportMetric(float64((cpu(b)-before).Microseconds())/float64(b.N), "cpu-µs/op")
			})
		}
	}
}

func cpu(b *testing.B) time.Duration {
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
