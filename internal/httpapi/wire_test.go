package httpapi_test

import (
	"math"
	"net/url"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/testenv"
)

// through returns the same URL by way of a new proxy.
func through(t *testing.T, server string) (*testenv.Proxy, string) {
	t.Helper()
	u, err := url.Parse(server)
	require.NoError(t, err)
	proxy := testenv.NewProxy(t, u.Host)
	u.Host = proxy.Addr
	return proxy, u.String()
}

// cost is how many round trips a request takes.
type cost struct{ redis, postgres int }

// measured is a kind of request: prepare returns one to send, and what ends it.
type measured struct {
	name    string
	prepare func() (send, after func())
	cost    cost
}

// TestCost_InRoundTrips counts round trips on the wire. Each kind of request is sent several times
// and the cheapest counts: what comes on top now and then belongs to the connection (a new one's
// handshake, statements that it prepares, the check of one that was idle) and not to the request.
func TestCost_InRoundTrips(t *testing.T) {
	t.Parallel()
	redisWire, redisURL := through(t, testenv.Redis(t))
	postgresWire, postgresURL := through(t, testenv.Postgres(t))
	s := setupOn(t, servers{postgresURL, redisURL})
	for _, m := range s.measurements() {
		cheapest := cost{math.MaxInt, math.MaxInt}
		for range 5 {
			send, after := m.prepare()
			var took cost
			took.redis = redisWire.Count(func() { took.postgres = postgresWire.Count(send) })
			after()
			cheapest.redis, cheapest.postgres = min(cheapest.redis, took.redis), min(cheapest.postgres, took.postgres)
		}
		require.Equal(t, m.cost, cheapest, m.name)
	}
}

func (s *shop) measurements() []measured {
	s.t.Helper()
	customer := s.customer().ID
	s.post("/v1/customers/"+customer.String()+"/top-ups", newKey(), `{"amount":{"amount":100000,"currency":"USD"}}`, 201)
	order := orderOf(customer, "tee-black", 1)
	s.post("/v1/orders", "kept", order, 201)
	posts := func(key, body string, status int) func() (send, after func()) {
		return func() (send, after func()) {
			return func() { s.post("/v1/orders", keyOr(key), body, status) }, func() {}
		}
	}
	pays := func(method string) func() (send, after func()) {
		return func() (send, after func()) {
			path := payments(s.order(customer).ID)
			return func() { s.post(path, newKey(), method, 201) }, func() {}
		}
	}
	return []measured{
		{"new order", posts("", order, 201), cost{2, 2}},
		{"replay", posts("kept", order, 201), cost{1, 0}},
		{"in progress", func() (send, after func()) { return s.inProgress(order) }, cost{1, 0}},
		{"other body", posts("kept", orderOf(customer, "tee-black", 2), 422), cost{1, 0}},
		{"bad body", posts("bad", "{", 400), cost{1, 1}},
		{"out of stock", posts("", orderOf(customer, "limited-print", 11), 409), cost{2, 2}},
		{"new customer", func() (send, after func()) {
			person := `{"name":"Ada","email":"` + uuid.NewString() + `@example.com"}`
			return func() { s.post("/v1/customers", newKey(), person, 201) }, func() {}
		}, cost{2, 2}},
		{"wallet payment", pays(`{"method":{"type":"wallet"}}`), cost{2, 2}},
		{"card payment", pays(card("tok_visa")), cost{2, 4}},
		{"read", func() (send, after func()) { return func() { s.get("/v1/products/tee-black") }, func() {} }, cost{0, 1}},
	}
}

// inProgress has an order wait while another with its key is sent.
func (s *shop) inProgress(order string) (send, after func()) {
	s.t.Helper()
	key, release := newKey(), s.hold("tee-black")
	running := s.start(request{method: "POST", path: "/v1/orders", key: key, body: order})
	s.eventually(func() bool { return s.waiters() == 1 }, "the first order is under way")
	send = func() { s.post("/v1/orders", key, order, 409) }
	return send, func() {
		release()
		require.Equal(s.t, 201, s.await(running).status)
	}
}

// keyOr is the key, or a new one.
func keyOr(key string) string {
	if key == "" {
		return newKey()
	}
	return key
}
