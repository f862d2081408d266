package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/httpapi"
	"github.com/oncepay/oncepay/internal/testenv"
)

// setupStricter has a second replica of a release that rejects every body.
func setupStricter(t *testing.T, on servers) *shop {
	t.Helper()
	s := setupOn(t, on)
	server, err := httpapi.NewStricter(s.config("api-2", on), func(body *openapi3.Schema) { body.MinProps = 100 })
	require.NoError(t, err)
	s.replicas[1] = s.listen(server)
	return s
}

// changes is a request of each route that takes a key, with its status.
func (s *shop) changes() map[string]request {
	customer := s.customer().ID
	cancelled, payable, declined, payment := s.order(customer).ID, s.order(customer).ID, s.order(customer).ID, s.pay(s.order(customer).ID).ID
	send := func(method, path, body string) request {
		return request{method: method, path: path, body: body, key: newKey()}
	}
	return map[string]request{
		"put product":     send("PUT", "/v1/products/poster", `{"name":"Poster","price":{"amount":900,"currency":"USD"},"stock":3}`),
		"update product":  send("PATCH", "/v1/products/tee-black", `{"stock_change":-3}`),
		"create customer": send("POST", "/v1/customers", `{"name":"Ada","email":"once@example.com"}`),
		"update customer": send("PATCH", "/v1/customers/"+customer.String(), `{"name":"Ada L."}`),
		"top up":          send("POST", "/v1/customers/"+customer.String()+"/top-ups", `{"amount":{"amount":1,"currency":"USD"},"request_nonce":"1"}`),
		"place order":     send("POST", "/v1/orders", orderOf(customer, "sticker-pack", 1)),
		"out of stock":    send("POST", "/v1/orders", orderOf(customer, "limited-print", 11)),
		"update order":    send("PATCH", "/v1/orders/"+cancelled.String(), `{"status":"cancelled"}`),
		"pay":             send("POST", payments(payable), card("tok_visa")),
		"declined":        send("POST", payments(declined), card("tok_declined")),
		"refund":          send("POST", "/v1/payments/"+payment.String()+"/refunds", `{}`),
	}
}

// later is a retry at the stricter replica.
func later(r request, edit ...func(*http.Request)) request {
	r.replica, r.body = 1, strings.Replace(r.body, `"request_nonce":"1"`, `"request_nonce":"2"`, 1)
	for _, e := range edit {
		r.edit = e
	}
	return r
}

// onlyCheck is the result of the one check since observed was called.
func (s *shop) onlyCheck() idempotency.Result {
	s.t.Helper()
	checks := s.observed()
	require.Len(s.t, checks, 1)
	return checks[0].result
}

// TestStricterRelease_ReplaysWhatItRejects from Redis and, once that is emptied, from PostgreSQL.
func TestStricterRelease_ReplaysWhatItRejects(t *testing.T) {
	t.Parallel()
	s := setupStricter(t, servers{testenv.Postgres(t), testenv.Redis(t)})
	for name, r := range s.changes() {
		first := s.do(r)
		require.Less(t, first.status, 500, first.body)
		before := s.effect()
		for _, tier := range []string{"Redis", "PostgreSQL"} {
			s.observed()
			again := s.do(later(r))
			require.True(t, again.replayed(), "%s from %s: %s", name, tier, again.body)
			requireSame(t, first, again)
			require.Equal(t, idempotency.ResultReplay, s.onlyCheck(), name)

			tooOld := s.do(later(r, startedAt(time.Now().Add(-checkout.MaxRequestAge-time.Minute))))
			requireSame(t, first, tooOld)
			another := later(r)
			another.body = strings.Replace(r.body, "{", `{"unknown":1,`, 1)
			another.body = strings.Replace(another.body, ",}", "}", 1)
			s.do(another).problem(400, "invalid_request")
			stranger := s.do(later(r, as(other)))
			require.Equal(t, 400, stranger.status, "the keys of another account: %s", stranger.body)
			require.NoError(t, s.redis.FlushDB(s.ctx).Err())
		}
		require.Equal(t, before, s.effect(), name)
	}
}

// TestStricterRelease_LeavesTheKeyOfARejectedRequestFree for the release that accepts it.
func TestStricterRelease_LeavesTheKeyOfARejectedRequestFree(t *testing.T) {
	t.Parallel()
	s := setupStricter(t, servers{testenv.Postgres(t), testenv.Redis(t)})
	for name, r := range s.changes() {
		before := s.footprint()
		s.observed()
		s.do(later(r)).problem(400, "invalid_request")
		require.Equal(t, idempotency.ResultRejected, s.onlyCheck(), name)
		s.do(request{method: "GET", path: keyPath(r.key)}).problem(404, "idempotency_key_not_found")
		require.Equal(t, before, s.footprint(), name)
		first := s.do(r)
		require.Less(t, first.status, 500, first.body)
		require.False(t, first.replayed(), name)
	}
}

// TestStricterRelease_WaitsForWhatIsInProgress: what is not decided is not rejected either.
func TestStricterRelease_WaitsForWhatIsInProgress(t *testing.T) {
	t.Parallel()
	s := setupStricter(t, servers{testenv.Postgres(t), testenv.Redis(t)})
	customer := s.customer().ID
	release := s.hold("tee-black")
	r := request{method: "POST", path: "/v1/orders", key: newKey(), body: orderOf(customer, "tee-black", 1)}
	placing := s.start(r)
	s.eventually(func() bool { return s.waiters() == 1 }, "the order is under way")
	undecided := s.do(later(r))
	undecided.problem(409, "idempotency_in_progress")
	require.NotEmpty(t, undecided.header.Get("Retry-After"))
	another := later(r)
	another.body = orderOf(customer, "tee-black", 2)
	s.do(another).problem(400, "invalid_request")
	release()
	requireSame(t, s.await(placing), s.do(later(r)))

	pay := request{method: "POST", path: payments(s.order(customer).ID), key: newKey(), body: card("tok_charged_silent")}
	s.do(pay).problem(503, "payment_outcome_unknown")
	require.NoError(t, s.redis.FlushDB(s.ctx).Err())
	s.do(later(pay)).problem(409, "idempotency_in_progress")
	another = later(pay)
	another.body = card("tok_mastercard")
	s.do(another).problem(400, "invalid_request")
	paid := s.do(pay)
	require.Equal(t, http.StatusCreated, paid.status, paid.body)
	requireSame(t, paid, s.do(later(pay)))
}

// TestStricterRelease_AsksTheTierThatIsThere, and rejects nothing for good while none is.
func TestStricterRelease_AsksTheTierThatIsThere(t *testing.T) {
	t.Parallel()
	redis, database := testenv.RedisServer(t), testenv.PostgresServer(t)
	s := setupStricter(t, servers{database.URL, redis.URL})
	customer := s.customer().ID
	kept := map[string]request{
		"order":  {method: "POST", path: "/v1/orders", key: newKey(), body: orderOf(customer, "tee-black", 1)},
		"top-up": {method: "POST", path: "/v1/customers/" + customer.String() + "/top-ups", key: newKey(), body: `{"amount":{"amount":1,"currency":"USD"}}`},
	}
	first := map[string]reply{}
	for name, r := range kept {
		first[name] = s.do(r)
		require.Equal(t, http.StatusCreated, first[name].status, first[name].body)
	}
	replays := func() {
		t.Helper()
		for name, r := range kept {
			requireSame(t, first[name], s.do(later(r)))
		}
	}
	unknown := kept["order"]
	unknown.key = newKey()

	redis.Stop()
	replays()
	s.do(later(unknown)).problem(400, "invalid_request")
	database.Stop()
	for _, r := range kept {
		s.do(later(r)).problem(503, "service_unavailable")
	}
	s.do(later(unknown)).problem(503, "service_unavailable")
	redis.Start()
	database.Start()
	s.pool.Reset()
	replays()
	s.do(later(unknown)).problem(400, "invalid_request")
}

// TestRejection_OfAnyStageComesAfterTheKeptAnswer has requests that stages reject, and that an
// earlier release has executed: their keys have the fingerprints.
func TestRejection_OfAnyStageComesAfterTheKeptAnswer(t *testing.T) {
	t.Parallel()
	s := setup(t)
	customer := "/v1/customers/" + s.customer().ID.String()
	for name, r := range map[string]struct {
		request
		status int
		code   string
	}{
		"unknown field":        {request{method: "PATCH", path: customer, body: `{"nickname":"Ada"}`}, 400, "invalid_request"},
		"no JSON":              {request{method: "PATCH", path: customer, body: `{"name":`}, 400, "invalid_request"},
		"two members":          {request{method: "PATCH", path: customer, body: `{"name":"Ada","name":"Eve"}`}, 400, "invalid_request"},
		"another type":         {request{method: "PATCH", path: customer, body: `{"name":"Ada"}`, edit: with("Content-Type", "text/plain")}, 415, "unsupported_media_type"},
		"a card number":        {request{method: "PATCH", path: customer, body: `{"name":"4242 4242 4242 4242"}`}, 400, "card_number_refused"},
		"a path":               {request{method: "PATCH", path: "/v1/customers/42", body: `{"name":"Ada"}`}, 400, "invalid_request"},
		"a query":              {request{method: "PATCH", path: customer + "?a;b", body: `{"name":"Ada"}`}, 400, "invalid_request"},
		"a rule of the domain": {request{method: "PATCH", path: customer, body: `{"name":" "}`}, 400, "invalid_name"},
		"its age":              {request{method: "PATCH", path: customer, body: `{"name":"Eve"}`, edit: startedAt(time.Now().Add(-time.Hour))}, 503, "request_too_old"},
	} {
		r.key = newKey()
		s.do(r.request).problem(r.status, r.code)
		first := s.do(request{method: "PATCH", path: customer, key: r.key, body: `{"name":"Ada L."}`})
		require.Equal(t, http.StatusOK, first.status, first.body)
		s.do(r.request).problem(r.status, r.code)

		q, err := http.NewRequestWithContext(s.ctx, r.method, r.path, strings.NewReader(r.body))
		require.NoError(t, err)
		q.Header.Set("Content-Type", "application/json")
		if r.edit != nil {
			r.edit(q)
		}
		fingerprint := idempotency.FingerprintOf(q, []byte(r.body))
		_, err = s.pool.Exec(s.ctx, "UPDATE idempotency_keys SET fingerprint = $1 WHERE key = $2", fingerprint[:], r.key)
		require.NoError(t, err)
		require.NoError(t, s.redis.FlushDB(s.ctx).Err())
		again := s.do(r.request)
		require.True(t, again.replayed(), "%s: %s", name, again.body)
		requireSame(t, first, again)
	}
}

// TestRejection_LogsNoCardNumber: the observer of checks writes keys to the log.
func TestRejection_LogsNoCardNumber(t *testing.T) {
	t.Parallel()
	s := setup(t)
	r := request{method: "POST", path: "/v1/customers", body: `{"name":"Ada","email":"a@example.com"}`, key: "4242 4242 4242 4242"}
	s.do(r).problem(400, "card_number_refused")
	require.Empty(t, s.observed())
	r.key, r.body = newKey(), `{}`
	s.do(r).problem(400, "invalid_request")
	require.Equal(t, idempotency.ResultRejected, s.onlyCheck())
}
