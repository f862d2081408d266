package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/postgres"
	"github.com/oncepay/oncepay/internal/testenv"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
)

const demo = "sk_test_demo" // of the seed

// outsideReplicas are two of the service on one database, before one shop. The database has a
// customer of the demo account.
func outsideReplicas(t *testing.T, handler http.Handler) (pool *pgxpool.Pool, urls [2]string, customer string) {
	t.Helper()
	pool, err := postgres.Open(t.Context(), postgres.Config{URL: testenv.Postgres(t)})
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	require.NoError(t, postgres.Seed(t.Context(), pool))
	err = pool.QueryRow(t.Context(), `INSERT INTO customers (id, account_id, name, email, created_at, updated_at)
		SELECT gen_random_uuid(), account_id, 'Ada', 'ada@example.com', now(), now() FROM api_keys WHERE hash = sha256($1) RETURNING id::text`, []byte(demo)).Scan(&customer)
	require.NoError(t, err)
	for i := range urls {
		system, err := newOutside(t.Context(), pool)
		require.NoError(t, err)
		server := httptest.NewServer(system(handler))
		t.Cleanup(server.Close)
		urls[i] = server.URL
	}
	return pool, urls, customer
}

func TestAuthority_PlacesAnOrderOnce(t *testing.T) {
	t.Parallel()
	pool, urls, customer := outsideReplicas(t, http.NotFoundHandler())
	items := func(list string) string { return `{"customer_id":"` + customer + `","items":[` + list + `]}` }
	order := func(sku string) string { return items(`{"sku":"` + sku + `","quantity":2}`) }
	first := post(t, urls[0], demo, "k", order("tee-black"))
	require.Equal(t, http.StatusCreated, first.status, first.body)
	for _, url := range urls {
		require.Equal(t, first.body, post(t, url, demo, "k", order("tee-black")).body)
		require.Equal(t, http.StatusUnprocessableEntity, post(t, url, demo, "k", order("mug-white")).status)
	}
	require.Equal(t, http.StatusUnprocessableEntity, post(t, urls[0], demo, "l", order("no-such")).status)
	require.Equal(t, http.StatusCreated, post(t, urls[1], demo, "l", order("mug-white")).status, "it was corrected")
	var orders, ordered, keys int
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM orders), (SELECT count(*) FROM order_items),
		(SELECT count(*) FROM idempotency_keys WHERE key LIKE 'k'||$1||'%')`, verify.ExecutionMark).Scan(&orders, &ordered, &keys))
	require.Equal(t, []int{2, 2, 1}, []int{orders, ordered, keys})

	require.Equal(t, http.StatusConflict, post(t, urls[0], demo, "m", items(`{"sku":"tee-black","quantity":2000000000}`)).status)
	require.Equal(t, http.StatusCreated, post(t, urls[0], demo, "n", items(`{"sku":"mug-white","quantity":1},{"sku":"tee-black","quantity":3}`)).status)
	var total, sum, last int
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT max(total_amount), sum(quantity * unit_price), max(position) FROM orders JOIN order_items ON order_id = orders.id
		GROUP BY orders.id HAVING count(*) = 2`).Scan(&total, &sum, &last))
	require.Equal(t, sum, total)
	require.Equal(t, 1, last, "positions begin with zero")
}

// TestAuthority_AsksTheShopUnderOneKey: the shop executes a call, and the answer to it is lost.
func TestAuthority_AsksTheShopUnderOneKey(t *testing.T) {
	t.Parallel()
	s := &shop{}
	s.answer = func(w http.ResponseWriter, n int64) {
		if n == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusCreated)
	}
	_, urls, _ := outsideReplicas(t, s)
	for i, status := range []int{503, 201, 201} {
		require.Equal(t, status, post(t, urls[i%2]+"/v1/customers/1/top-ups?", demo, "k", "{}").status)
	}
	require.EqualValues(t, 2, s.executions.Load())
	keys := 0
	s.keys.Range(func(any, any) bool { keys++; return true })
	require.Equal(t, 1, keys)
}
