package httpapi_test

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/api"
	"github.com/oncepay/oncepay/api/client"
	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/internal/httpapi"
)

// TestAPI_WorksThroughTheGeneratedClient is a shopper's whole way.
func TestAPI_WorksThroughTheGeneratedClient(t *testing.T) {
	t.Parallel()
	s := setup(t)
	c, ctx := s.client(), s.ctx
	customer := s.customer()

	topUp, err := c.CreateTopUpWithResponse(ctx, customer.ID, &client.CreateTopUpParams{IdempotencyKey: newKey()},
		client.TopUpCreate{Amount: client.Money{Amount: 10_000, Currency: "USD"}})
	require.NoError(t, err)
	require.EqualValues(t, 10_000, topUp.JSON201.Balance.Amount)

	placed, err := c.CreateOrderWithBodyWithResponse(ctx, &client.CreateOrderParams{IdempotencyKey: newKey()}, "application/json",
		strings.NewReader(orderOf(customer.ID, "mug-white", 3)))
	require.NoError(t, err)
	require.EqualValues(t, 3600, placed.JSON201.Total.Amount)
	require.Equal(t, "/v1/orders/"+placed.JSON201.ID.String(), placed.HTTPResponse.Header.Get("Location"))

	sent := client.Address{Line1: "1 Main St", City: "London", PostalCode: "N1", Country: "GB"}
	addressed, err := c.UpdateOrderWithResponse(ctx, placed.JSON201.ID, &client.UpdateOrderParams{IdempotencyKey: newKey()},
		client.OrderUpdate{ShippingAddress: &sent})
	require.NoError(t, err)
	require.Equal(t, sent, *addressed.JSON200.ShippingAddress)

	paid, err := c.CreatePaymentWithResponse(ctx, placed.JSON201.ID, &client.CreatePaymentParams{IdempotencyKey: newKey()},
		client.PaymentCreate{Method: client.PaymentMethod{Type: client.MethodTypeWallet}})
	require.NoError(t, err)
	require.Equal(t, client.Succeeded, paid.JSON201.Status)

	part := client.Money{Amount: 600, Currency: "USD"}
	refunded, err := c.CreateRefundWithResponse(ctx, paid.JSON201.ID, &client.CreateRefundParams{IdempotencyKey: newKey()},
		client.RefundCreate{Amount: &part})
	require.NoError(t, err)
	require.Equal(t, part, refunded.JSON201.Amount)

	order, err := c.GetOrderWithResponse(ctx, placed.JSON201.ID)
	require.NoError(t, err)
	require.Equal(t, client.OrderStatusPartiallyRefunded, order.JSON200.Status)
	wallet, err := c.GetWalletWithResponse(ctx, customer.ID)
	require.NoError(t, err)
	require.EqualValues(t, 10_000-3600+600, wallet.JSON200.Balance.Amount)
	payment, err := c.GetPaymentWithResponse(ctx, paid.JSON201.ID)
	require.NoError(t, err)
	require.EqualValues(t, 600, payment.JSON200.Refunded.Amount)
}

// What a POST answers is what a GET shows afterwards, byte for byte.
func TestAnswer_IsWhatGETShows(t *testing.T) {
	t.Parallel()
	s := setup(t)
	customer := s.customer()
	order := s.post("/v1/orders", newKey(), orderOf(customer.ID, "tee-black", 2), http.StatusCreated)
	require.Equal(t, order.body, s.get(order.header.Get("Location")).body)
	payment := s.post(payments(decode[api.Order](order).ID), newKey(), card("tok_visa"), http.StatusCreated)
	require.Equal(t, payment.body, s.get(payment.header.Get("Location")).body)
	made := s.post("/v1/customers", newKey(), `{"name":"<Ada> & co","email":"a@example.com"}`, http.StatusCreated)
	require.Equal(t, made.body, s.get(made.header.Get("Location")).body)
}

func TestList_IsPageByPage(t *testing.T) {
	t.Parallel()
	s := setup(t)
	customer := s.customer().ID
	placed := make([]uuid.UUID, 5)
	for i := range placed {
		placed[len(placed)-1-i] = s.order(customer).ID // newest first
		s.order(s.customer().ID)
	}
	var orders []uuid.UUID
	for path := "/v1/orders?limit=2&customer_id=" + customer.String(); path != ""; {
		list := decode[api.OrderPage](s.get(path))
		require.LessOrEqual(t, len(list.Data), 2)
		for _, order := range list.Data {
			orders = append(orders, order.ID)
		}
		path = nextPage("/v1/orders?limit=2&customer_id="+customer.String()+"&cursor=", list.NextCursor)
	}
	require.Equal(t, placed, orders)

	var products []string
	for path := "/v1/products?limit=3"; path != ""; {
		list := decode[api.ProductPage](s.get(path))
		for _, product := range list.Data {
			products = append(products, product.Sku)
		}
		path = nextPage("/v1/products?limit=3&cursor=", list.NextCursor)
	}
	require.Equal(t, []string{"limited-print", "mug-white", "sticker-pack", "tee-black"}, products)
	require.JSONEq(t, `{"data":[]}`, s.get("/v1/orders?customer_id="+uuid.NewString()).body)
}

func nextPage(path string, cursor *string) string {
	if cursor == nil {
		return ""
	}
	return path + *cursor
}

func TestReplay_IsByteForByte(t *testing.T) {
	t.Parallel()
	s := setup(t)
	customer := s.customer().ID
	order, payable := s.order(customer).ID, s.order(customer).ID
	payment := s.pay(order).ID
	s.observed()
	for route, c := range map[string]struct{ method, path, body string }{
		"PUT /v1/products/{sku}":                   {"PUT", "/v1/products/poster", `{"name":"Poster","price":{"amount":900,"currency":"USD"},"stock":3}`},
		"PATCH /v1/products/{sku}":                 {"PATCH", "/v1/products/tee-black", `{"stock_change":-3}`},
		"POST /v1/customers":                       {"POST", "/v1/customers", `{"name":"Ada","email":"once@example.com"}`},
		"PATCH /v1/customers/{customer_id}":        {"PATCH", "/v1/customers/" + customer.String(), `{"name":"Ada L."}`},
		"POST /v1/customers/{customer_id}/top-ups": {"POST", "/v1/customers/" + customer.String() + "/top-ups", `{"amount":{"amount":1,"currency":"USD"}}`},
		"POST /v1/orders":                          {"POST", "/v1/orders", orderOf(customer, "sticker-pack", 1)},
		"PATCH /v1/orders/{order_id}":              {"PATCH", "/v1/orders/" + s.order(customer).ID.String(), `{"status":"cancelled"}`},
		"POST /v1/orders/{order_id}/payments":      {"POST", payments(payable), card("tok_visa")},
		"POST /v1/payments/{payment_id}/refunds":   {"POST", "/v1/payments/" + payment.String() + "/refunds", `{}`},
	} {
		s.observed()
		key := newKey()
		first := s.do(request{method: c.method, path: c.path, key: key, body: c.body})
		require.Less(t, first.status, 300, first.body)
		require.False(t, first.replayed(), route)
		effect := s.effect()
		second := s.do(request{method: c.method, path: c.path, key: key, body: " " + c.body, replica: 1})
		require.True(t, second.replayed(), route)
		requireSame(t, first, second)
		require.Equal(t, "api-2", second.header.Get("X-Served-By"))
		require.NotEqual(t, first.header.Get("X-Request-ID"), second.header.Get("X-Request-ID"))
		require.Equal(t, effect, s.effect(), route)
		_, pattern, _ := strings.Cut(route, " ")
		require.Equal(t, []check{{pattern, idempotency.ResultAcquired}, {pattern, idempotency.ResultReplay}}, s.observed())
	}
	require.Equal(t, 1, s.charges(payable))
}

func TestKey_IsRefusedForAnotherRequest(t *testing.T) {
	t.Parallel()
	s := setup(t)
	customer, key := s.customer().ID, newKey()
	s.post("/v1/orders", key, orderOf(customer, "mug-white", 1), http.StatusCreated)
	effect := s.effect()
	for _, again := range []request{
		{method: "POST", path: "/v1/orders", key: key, body: orderOf(customer, "mug-white", 2)},
		{method: "POST", path: "/v1/customers", key: key, body: `{"name":"Ada","email":"b@example.com"}`},
	} {
		s.do(again).problem(422, "idempotency_key_reused")
		require.NoError(t, s.redis.FlushDB(s.ctx).Err())
		p := s.do(again).problem(422, "idempotency_key_reused") // the authority says the same
		require.Equal(t, "Idempotency key has already been used with a different request payload.", p.Error)
		require.True(t, s.post("/v1/orders", key, orderOf(customer, "mug-white", 1), http.StatusCreated).replayed())
	}
	require.Equal(t, effect, s.effect())
}

// TestPath_InUpperCaseIsAnotherRequest for the same resource: openapi.yaml tells clients.
func TestPath_InUpperCaseIsAnotherRequest(t *testing.T) {
	t.Parallel()
	s := setup(t)
	order, key := s.order(s.customer().ID).ID, newKey()
	upper := "/v1/orders/" + strings.ToUpper(order.String())
	require.Equal(t, s.get("/v1/orders/"+order.String()).body, s.get(upper).body)
	s.post(payments(order), key, card("tok_visa"), http.StatusCreated)
	s.do(request{method: "POST", path: upper + "/payments", key: key, body: card("tok_visa")}).problem(422, "idempotency_key_reused")
	require.Equal(t, 1, s.charges(order))
}

func TestFingerprint_LeavesExcludedFieldsOut(t *testing.T) {
	t.Parallel()
	s := setup(t)
	order, key := s.order(s.customer().ID).ID, newKey()
	first := s.post(payments(order), key, `{"method":{"type":"card","token":"tok_visa"},"client_timestamp":"1","request_nonce":"a"}`, 201)
	second := s.post(payments(order), key, `{"request_nonce":"b","client_timestamp":"2","method":{"token":"tok_visa","type":"card"}}`, 201)
	require.True(t, second.replayed())
	requireSame(t, first, second)
}

func TestKey_BelongsToItsAccount(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key, body := newKey(), `{"name":"Ada","email":"ada@example.com"}`
	mine := s.post("/v1/customers", key, body, http.StatusCreated)
	theirs := s.do(request{method: "POST", path: "/v1/customers", key: key, body: body, edit: as(other)})
	require.Equal(t, http.StatusCreated, theirs.status, theirs.body)
	require.False(t, theirs.replayed())
	require.NotEqual(t, decode[api.Customer](mine).ID, decode[api.Customer](theirs).ID)
	differs := s.do(request{method: "POST", path: "/v1/customers", key: key, body: `{"name":"Eve","email":"eve@example.com"}`, edit: as(other)})
	differs.problem(422, "idempotency_key_reused")
}

func TestRefusal_LeavesTheKeyToACorrectedRequest(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key := newKey()
	s.post("/v1/customers", newKey(), `{"name":"Ada","email":"taken@example.com"}`, http.StatusCreated)
	before := s.footprint()
	for range 2 {
		answer := s.post("/v1/customers", key, `{"name":"Eve","email":"Taken@example.com"}`, http.StatusConflict)
		answer.problem(409, "email_taken")
		require.False(t, answer.replayed())
	}
	require.Equal(t, before, s.footprint())
	corrected := s.post("/v1/customers", key, `{"name":"Eve","email":"eve@example.com"}`, http.StatusCreated)
	require.False(t, corrected.replayed())
}

func TestPayment_DeclinedIsKept(t *testing.T) {
	t.Parallel()
	s := setup(t)
	order, key := s.order(s.customer().ID).ID, newKey()
	first := s.post(payments(order), key, card("tok_declined"), http.StatusPaymentRequired)
	first.problem(402, "payment_declined")
	second := s.post(payments(order), key, card("tok_declined"), http.StatusPaymentRequired)
	require.True(t, second.replayed())
	requireSame(t, first, second)
	require.Zero(t, s.charges(order))
	require.Equal(t, api.OrderStatusPending, decode[api.Order](s.get("/v1/orders/"+order.String())).Status)
	s.pay(order) // with another key and card
	require.Equal(t, 1, s.charges(order))
}

// An unknown outcome is no failure: the key is free, and the retry asks the provider for the same
// charge.
func TestPayment_UnknownOutcomeIsNoFailure(t *testing.T) {
	t.Parallel()
	s := setup(t)
	order, key := s.order(s.customer().ID).ID, newKey()
	unknown := s.post(payments(order), key, card("tok_charged_no_answer"), http.StatusServiceUnavailable)
	unknown.problem(503, "payment_outcome_unknown")
	require.NotEmpty(t, unknown.header.Get("Retry-After"))
	require.Equal(t, api.OrderStatusPaying, decode[api.Order](s.get("/v1/orders/"+order.String())).Status)
	paid := s.do(request{method: "POST", path: payments(order), key: key, body: card("tok_charged_no_answer"), replica: 1})
	require.Equal(t, http.StatusCreated, paid.status, paid.body)
	require.False(t, paid.replayed())
	require.Equal(t, 1, s.charges(order))
	require.True(t, s.post(payments(order), key, card("tok_charged_no_answer"), http.StatusCreated).replayed())
}

func TestUpdateCustomer_WithOrWithoutAKey(t *testing.T) {
	t.Parallel()
	s := setup(t)
	customer, key := s.customer(), newKey()
	change := request{method: "PATCH", path: "/v1/customers/" + customer.ID.String(), body: `{"name":"Grace"}`}
	require.Equal(t, "Grace", decode[api.Customer](s.do(change)).Name)
	s.do(request{method: "PATCH", path: change.path, body: `{"name":"Ada"}`})
	change.key = key
	first := s.do(change)
	s.do(request{method: "PATCH", path: change.path, body: `{"name":"Ada"}`})
	second := s.do(change)
	require.True(t, second.replayed())
	requireSame(t, first, second)
	require.Equal(t, "Ada", decode[api.Customer](s.get(change.path)).Name, "the replay changed nothing")
}

// Answers hold names and amounts, so no cache keeps them, and no browser takes them for a page. The
// headers say so without a place in the record.
func TestAnswers_StayOutOfCaches(t *testing.T) {
	t.Parallel()
	s := setup(t)
	create := newCustomer(newKey())
	again := create
	again.replica = 1
	for status, r := range map[int]request{
		200: {method: "GET", path: "/v1/products"}, 201: create, 415: {method: "POST", path: "/v1/customers"}, 405: {method: "DELETE", path: "/v1/orders"},
		401: {method: "GET", path: "/v1/products", edit: without("Authorization")}, 404: {method: "GET", path: "/v1/nothing"},
	} {
		answer := s.do(r)
		require.Equal(t, status, answer.status)
		require.Equal(t, []string{"no-store"}, answer.header.Values("Cache-Control"), r.path)
		require.Equal(t, []string{"nosniff"}, answer.header.Values("X-Content-Type-Options"), r.path)
	}
	replay := s.do(again)
	require.True(t, replay.replayed())
	require.Equal(t, []string{"no-store"}, replay.header.Values("Cache-Control"))
	record, err := s.redis.Get(s.ctx, s.redisKeys(create.key)[0]).Result()
	require.NoError(t, err)
	require.NotContains(t, record, "no-store")
}

// A revoked API key is refused even where its answer is at hand.
func TestAuthentication_RefusesARevokedKeyEvenForAReplay(t *testing.T) {
	t.Parallel()
	s := setup(t, func(c *httpapi.Config) { c.AuthCacheTTL = 50 * time.Millisecond })
	key, body := newKey(), `{"name":"Ada","email":"ada@example.com"}`
	s.post("/v1/customers", key, body, http.StatusCreated)
	_, err := s.pool.Exec(s.ctx, `UPDATE api_keys SET revoked_at = now()`)
	require.NoError(t, err)
	var last reply
	s.eventually(func() bool {
		last = s.do(request{method: "POST", path: "/v1/customers", key: key, body: body})
		return last.status != http.StatusCreated
	}, "the key is refused")
	last.problem(401, "unauthorized")
}

// A suspended account gets nothing, not even an answer of before, until it is active again.
func TestAuthentication_RefusesASuspendedAccountEvenForAReplay(t *testing.T) {
	t.Parallel()
	s := setup(t, func(c *httpapi.Config) { c.AuthCacheTTL = 0 })
	r := request{method: "POST", path: "/v1/customers", key: newKey(), body: `{"name":"Ada","email":"ada@example.com"}`}
	first := s.do(r)
	before := s.footprint()
	_, err := s.pool.Exec(s.ctx, `UPDATE accounts SET suspended_at = now() WHERE name = 'Demo'`)
	require.NoError(t, err)
	s.do(r).problem(403, "account_suspended")
	s.do(request{method: "GET", path: "/v1/products"}).problem(403, "account_suspended")
	require.Equal(t, http.StatusOK, s.do(request{method: "GET", path: "/v1/products", edit: as(other)}).status)
	require.Equal(t, before, s.footprint())

	_, err = s.pool.Exec(s.ctx, `UPDATE accounts SET suspended_at = NULL`)
	require.NoError(t, err)
	requireSame(t, first, s.do(r))
}

// A key that may only read changes nothing, and leaves the idempotency key to one that may.
func TestAuthentication_LetsAReadOnlyKeyRead(t *testing.T) {
	t.Parallel()
	s := setup(t, func(c *httpapi.Config) { c.AuthCacheTTL = 0 })
	_, err := s.pool.Exec(s.ctx, `UPDATE api_keys SET read_only = true WHERE hash = sha256($1)`, []byte(demo))
	require.NoError(t, err)
	for _, method := range []string{"GET", "HEAD"} {
		require.Equal(t, http.StatusOK, s.do(request{method: method, path: "/v1/products"}).status)
	}
	r := request{method: "POST", path: "/v1/customers", key: newKey(), body: `{"name":"Ada","email":"ada@example.com"}`}
	refused := s.do(r)
	refused.problem(403, "api_key_read_only")
	require.Contains(t, refused.header.Get("WWW-Authenticate"), "insufficient_scope")
	_, err = s.pool.Exec(s.ctx, `UPDATE api_keys SET read_only = false`)
	require.NoError(t, err)
	require.False(t, s.post(r.path, r.key, r.body, http.StatusCreated).replayed())
}

// A stranger is refused without a query, also while the table of the keys is locked.
func TestAuthentication_OfAStrangerAsksNobody(t *testing.T) {
	t.Parallel()
	s := setup(t, func(c *httpapi.Config) {
		if c.Replica == "api-2" {
			c.AuthCacheTTL = 0
		}
	})
	tx, err := s.pool.Begin(s.ctx)
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(s.ctx)) }()
	// The pool ends transactions that do nothing: without this line the lock would be gone before
	// the control below.
	_, err = tx.Exec(s.ctx, "SET LOCAL idle_in_transaction_session_timeout = 0")
	require.NoError(t, err)
	_, err = tx.Exec(s.ctx, "LOCK TABLE api_keys_version, api_keys, accounts")
	require.NoError(t, err)
	for i := range 100 {
		s.do(request{method: "GET", path: "/v1/products", edit: as("sk_test_" + strconv.Itoa(i))}).problem(401, "unauthorized")
	}
	// The control: a known key does ask PostgreSQL, and meets the lock.
	known := s.do(request{method: "GET", path: "/v1/products", replica: 1})
	require.GreaterOrEqual(t, known.status, http.StatusInternalServerError)
	for range 3 { // the reading failed, so a stranger may have a new key
		s.do(request{method: "GET", path: "/v1/products", replica: 1, edit: as("sk_test_guess")}).problem(503, "service_unavailable")
	}
}

// Who tries many keys is not heard for the rest of a second, and the log stays short. Others at the
// same address notice nothing.
func TestAuthentication_AnswersAnAddressFewStrangers(t *testing.T) {
	t.Parallel()
	logs := &logLines{}
	s := setup(t, func(c *httpapi.Config) { c.Logger = slog.New(slog.NewJSONHandler(logs, nil)) })
	var last reply
	for last.status != http.StatusTooManyRequests && s.ctx.Err() == nil {
		last = s.do(request{method: "GET", path: "/v1/products", edit: as("sk_test_guess")})
	}
	last.problem(429, "rate_limited")
	require.Empty(t, logs.of(last.header.Get("X-Request-ID")), "it is not logged")
	known := s.do(request{method: "GET", path: "/v1/products"})
	require.Equal(t, http.StatusOK, known.status)
	require.NotEmpty(t, logs.of(known.header.Get("X-Request-ID")))
}

func TestRateLimit_IsPerAccount(t *testing.T) {
	t.Parallel()
	s := setup(t, func(c *httpapi.Config) { c.RateLimit = 3 })
	key, body := newKey(), `{"name":"Ada","email":"ada@example.com"}`
	var limited reply
	s.eventually(func() bool {
		limited = s.do(request{method: "GET", path: "/v1/products"})
		return limited.status != http.StatusOK
	}, "the limit is reached")
	limited.problem(429, "rate_limited")
	require.Equal(t, "1", limited.header.Get("Retry-After"))
	require.Equal(t, http.StatusOK, s.do(request{method: "GET", path: "/v1/products", edit: as(other)}).status)

	s.eventually(func() bool {
		answer := s.do(request{method: "POST", path: "/v1/customers", key: key, body: body})
		return answer.status == http.StatusCreated && !answer.replayed()
	}, "the account is let in again, and the key was not burned")
}
