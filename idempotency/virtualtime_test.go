package idempotency_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/memstore"
)

// TestVirtualTime_EndsLeasesAndTTLs is also how an application tests its own policies: package
// memstore has the clock of the bubble in which testing/synctest runs a test.
func TestVirtualTime_EndsLeasesAndTTLs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		policy := idempotency.Policy{Required: true, TTL: 48 * time.Hour, Lease: 15 * time.Second}
		keys := idempotency.New(store, idempotency.Always(policy), idempotency.WithSharedScope())
		defer keys.Wait()
		orders := 0
		handler := keys.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			orders++
			w.WriteHeader(http.StatusCreated)
		}))
		post := func() int {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/orders", http.NoBody)
			r.Header.Set(idempotency.HeaderKey, "key")
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			return w.Code
		}

		died := idempotency.Record{Key: "key", Status: idempotency.StatusInProgress, Owner: idempotency.NewOwner()}
		_, err := store.Acquire(context.Background(), died, policy.Lease) // a process that dies now
		require.NoError(t, err)
		require.Equal(t, http.StatusConflict, post())
		time.Sleep(policy.Lease)
		require.Equal(t, http.StatusCreated, post(), "the lease has ended")

		time.Sleep(policy.TTL - policy.Lease - time.Second)
		require.Equal(t, http.StatusCreated, post())
		require.Equal(t, 1, orders, "a replay: a record ends up to one lease before its TTL")
		time.Sleep(policy.Lease + time.Second)
		require.Equal(t, http.StatusCreated, post())
		require.Equal(t, 2, orders, "the answer is forgotten")
	})
}
