package httpapi_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/api"
	"github.com/oncepay/oncepay/internal/testenv"
)

func TestRedisDown_FollowsTheFailureMode(t *testing.T) {
	t.Parallel()
	redis := testenv.RedisServer(t)
	s := setupOn(t, servers{testenv.Postgres(t), redis.URL})
	customer := s.customer().ID
	order := s.order(customer).ID
	orderKey, payKey := newKey(), newKey()
	body := orderOf(customer, "tee-black", 1)
	redis.Stop()

	for _, c := range []struct{ path, body string }{
		{payments(order), card("tok_visa")},
		{"/v1/customers/" + customer.String() + "/top-ups", `{"amount":{"amount":1,"currency":"USD"}}`},
	} {
		before := s.effect()
		refused := s.post(c.path, payKey, c.body, http.StatusServiceUnavailable)
		refused.problem(503, "idempotency_store_unavailable")
		require.NotEmpty(t, refused.header.Get("Retry-After"))
		require.Equal(t, before, s.effect())
	}
	require.Zero(t, s.charges(order))

	first := s.post("/v1/orders", orderKey, body, http.StatusCreated)
	second := s.do(request{method: "POST", path: "/v1/orders", key: orderKey, body: body, replica: 1})
	require.True(t, second.replayed())
	requireSame(t, first, second)
	s.post("/v1/orders", orderKey, orderOf(customer, "tee-black", 2), 422).problem(422, "idempotency_key_reused")
	require.Equal(t, 2, value[int](s, `SELECT count(*) FROM orders`))

	redis.Start()
	paid := s.post(payments(order), payKey, card("tok_visa"), http.StatusCreated)
	require.False(t, paid.replayed())
	require.Equal(t, 1, s.charges(order))
	require.True(t, s.post("/v1/orders", orderKey, body, http.StatusCreated).replayed())
}

func TestRedisEmptied_ChangesNoOutcome(t *testing.T) {
	t.Parallel()
	s := setup(t)
	customer := s.customer().ID
	order := s.order(customer).ID
	for _, c := range []struct {
		path, body string
		status     int
	}{
		{"/v1/orders", orderOf(customer, "tee-black", 1), 201},
		{payments(order), card("tok_declined"), 402},
		{payments(order), card("tok_visa"), 201},
		{"/v1/orders", orderOf(customer, "limited-print", 11), 409},
	} {
		key := newKey()
		first := s.post(c.path, key, c.body, c.status)
		effect := s.effect()
		require.NoError(t, s.redis.FlushDB(s.ctx).Err())
		for range 2 { // from PostgreSQL, and then from Redis, where it was put back
			again := s.do(request{method: "POST", path: c.path, key: key, body: c.body, replica: 1})
			require.True(t, again.replayed(), c.path)
			requireSame(t, first, again)
			require.EqualValues(t, 1, s.redis.DBSize(s.ctx).Val())
		}
		require.Equal(t, effect, s.effect())
	}
	require.Equal(t, 1, s.charges(order))
}

func TestPostgresDown_IsUnavailable(t *testing.T) {
	t.Parallel()
	database := testenv.PostgresServer(t)
	s := setupOn(t, servers{database.URL, testenv.Redis(t)})
	customer, key := s.customer().ID, newKey()
	replayable := newKey()
	kept := s.post("/v1/orders", replayable, orderOf(customer, "tee-black", 1), http.StatusCreated)
	database.Stop()

	for _, send := range []request{
		{method: "GET", path: "/v1/products"},
		{method: "GET", path: "/v1/products", edit: as(other)}, // not in the cache of API keys
		{method: "POST", path: "/v1/orders", key: key, body: orderOf(customer, "mug-white", 1)},
	} {
		began := time.Now()
		answer := s.do(send)
		answer.problem(503, "service_unavailable")
		require.NotEmpty(t, answer.header.Get("Retry-After"))
		require.Less(t, time.Since(began), 5*time.Second, "a fast 503")
	}
	require.True(t, s.post("/v1/orders", replayable, orderOf(customer, "tee-black", 1), http.StatusCreated).replayed())

	database.Start()
	s.pool.Reset()      // of the test itself; the replicas must find out
	for i := range 20 { // more than a replica has connections, none of which is left
		require.Equal(t, http.StatusOK, s.do(request{method: "GET", path: "/v1/products", replica: i % 2}).status, "at once")
		placed := s.do(request{method: "POST", path: "/v1/orders", key: key, body: orderOf(customer, "mug-white", 1), replica: i % 2})
		require.Equal(t, http.StatusCreated, placed.status, placed.body)
	}
	require.Equal(t, kept.body, s.get("/v1/orders/"+decode[api.Order](kept).ID.String()).body)
	require.Equal(t, 2, value[int](s, `SELECT count(*) FROM orders`))
}
