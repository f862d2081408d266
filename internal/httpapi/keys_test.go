package httpapi_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/api"
	"github.com/oncepay/oncepay/internal/httpapi"
	"github.com/oncepay/oncepay/internal/testenv"
)

func keyPath(key string) string { return "/v1/idempotency-keys/" + url.PathEscape(key) }

func (s *shop) keyState(key string) api.KeyState {
	s.t.Helper()
	return decode[api.KeyState](s.get(keyPath(key)))
}

func TestKeyLookUp_SaysWhatBecameOfAKey(t *testing.T) {
	t.Parallel()
	s := setup(t)
	customer := s.customer().ID
	order := s.order(customer).ID
	for _, c := range []struct {
		path, body, operation, state string
		status                       int
		key                          string
	}{
		{"/v1/orders", orderOf(customer, "tee-black", 1), "place_order", "completed", 201, "100%41 " + newKey()},
		{payments(order), card("tok_declined"), "pay_order", "failed", 402, "declined/" + newKey()},
		{payments(order), card("tok_visa"), "pay_order", "completed", 201, "a/b c%"},
		{"/v1/orders", orderOf(customer, "limited-print", 11), "place_order", "failed", 409, "%41%2F../?#" + newKey()},
	} {
		s.do(request{method: "GET", path: keyPath(c.key)}).problem(404, "idempotency_key_not_found")
		first := s.post(c.path, c.key, c.body, c.status)
		known := s.keyState(c.key)
		require.Equal(t, c.key, known.Key)
		require.EqualValues(t, c.state, known.State)
		require.Equal(t, c.operation, *known.Operation)
		require.EqualValues(t, c.status, *known.ResponseStatus)
		if location := first.header.Get("Location"); location != "" {
			require.Equal(t, location, *known.Resource)
			s.get(*known.Resource)
		} else {
			require.Nil(t, known.Resource)
		}
		require.WithinDuration(t, time.Now(), known.CreatedAt, testTimeout)
		require.False(t, known.CompletedAt.Before(known.CreatedAt))
		require.Greater(t, known.ExpiresAt.Sub(*known.CompletedAt), 23*time.Hour)

		require.NoError(t, s.redis.FlushDB(s.ctx).Err())
		require.Equal(t, known, s.keyState(c.key), "PostgreSQL knows")
		require.Zero(t, s.redis.DBSize(s.ctx).Val(), "asking writes nothing")
		s.do(request{method: "GET", path: keyPath(c.key), edit: as(other)}).problem(404, "idempotency_key_not_found")
	}
	s.do(request{method: "GET", path: keyPath("k"), edit: without("Authorization")}).problem(401, "unauthorized")
	s.do(request{method: "GET", path: keyPath(string(make([]byte, 256)))}).problem(400, "invalid_request")
}

func TestKeyLookUp_SaysThatAKeyIsInProgress(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := newKey()
	_, payment := s.lostPayment(key)
	known := s.keyState(key)
	require.Equal(t, api.KeyStateStateInProgress, known.State)
	require.Equal(t, "/v1/payments/"+payment.String(), *known.Resource)
	require.Nil(t, known.ResponseStatus)
	require.Nil(t, known.CompletedAt)
	require.Nil(t, known.ExpiresAt)

	// An order is one transaction, so that the authority knows nothing of it before it is done; the
	// store does.
	customer := s.customer().ID
	key = newKey()
	release := s.hold("tee-black")
	first := s.start(request{method: "POST", path: "/v1/orders", key: key, body: orderOf(customer, "tee-black", 1)})
	s.eventually(func() bool { return s.waiters() == 1 }, "the order is under way")
	known = s.keyState(key)
	require.Equal(t, api.KeyStateStateInProgress, known.State)
	require.Equal(t, key, known.Key)
	require.WithinDuration(t, time.Now(), known.CreatedAt, testTimeout)
	s.do(request{method: "GET", path: keyPath(key), edit: as(other)}).problem(404, "idempotency_key_not_found")
	release()
	require.Equal(t, http.StatusCreated, s.await(first).status)
	require.Equal(t, api.KeyStateStateCompleted, s.keyState(key).State)
}

// What cannot be known is not denied: without Redis a request may be under way.
func TestKeyLookUp_WithoutRedis(t *testing.T) {
	t.Parallel()
	redis := testenv.RedisServer(t)
	s := setupOn(t, servers{testenv.Postgres(t), redis.URL})
	key := newKey()
	s.post("/v1/orders", key, orderOf(s.customer().ID, "tee-black", 1), http.StatusCreated)
	redis.Stop()
	require.Equal(t, api.KeyStateStateCompleted, s.keyState(key).State)
	s.do(request{method: "GET", path: keyPath(newKey())}).problem(503, "service_unavailable")
}

func TestPrefer_WaitsForTheOtherAttempt(t *testing.T) {
	t.Parallel()
	s := setup(t)
	customer, key := s.customer().ID, newKey()
	r := request{method: "POST", path: "/v1/orders", key: key, body: orderOf(customer, "tee-black", 1)}
	release := s.hold("tee-black")
	first := s.start(r)
	s.eventually(func() bool { return s.waiters() == 1 }, "the order is under way")

	r.replica, r.edit = 1, with("Prefer", "wait=1")
	began := time.Now()
	hasty := s.do(r)
	hasty.problem(409, "idempotency_in_progress")
	require.Equal(t, "wait=1", hasty.header.Get("Preference-Applied"))
	require.GreaterOrEqual(t, time.Since(began), time.Second)

	r.edit = with("Prefer", "wait=3600")
	patient := s.start(r)
	replica := s.replicas[1].Config.Handler.(*httpapi.Server)
	s.eventually(func() bool { return replica.Waiting() == 1 }, "the second request waits")
	release()
	placed, waited := s.await(first), s.await(patient)
	require.Equal(t, "wait=5", waited.header.Get("Preference-Applied"), "no longer than that")
	require.True(t, waited.replayed())
	requireSame(t, placed, waited)
	require.Equal(t, 1, value[int](s, `SELECT count(*) FROM orders`))
}
