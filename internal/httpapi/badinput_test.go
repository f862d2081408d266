package httpapi_test

import (
	"crypto/sha256"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/api"
)

// badCase is a request that is refused before anything happens.
type badCase struct {
	name   string
	send   request
	status int
	code   string
	detail string // "" is any
}

// requireRefused sends each case and wants its problem, and nothing written.
func (s *shop) requireRefused(t *testing.T, cases []badCase) {
	t.Helper()
	for _, c := range cases {
		before := s.footprint()
		answer := s.do(c.send)
		answer.t = t
		t.Log(c.name) // shown with a failure
		p := answer.problem(c.status, c.code)
		if c.detail != "" {
			require.Equal(t, c.detail, p.Detail, c.name)
		}
		require.Equal(t, answer.header.Get("X-Request-ID"), p.RequestID, c.name)
		require.Equal(t, "api-1", answer.header.Get("X-Served-By"), c.name)
		require.NotRegexp(t, "4242.?4242", answer.body, c.name) // a random request ID may well contain 4242
		require.Equal(t, before, s.footprint(), c.name)
	}
}

func TestValidation_RefusesBadBodies(t *testing.T) {
	t.Parallel()
	s := setup(t)
	customer := s.customer().ID.String()
	order := func(body string) request {
		return request{method: "POST", path: "/v1/orders", key: newKey(), body: body}
	}
	items := func(items string) request { return order(`{"customer_id":"` + customer + `","items":` + items + `}`) }
	quantity := func(n string) request { return items(`[{"sku":"mug-white","quantity":` + n + `}]`) }
	bad := func(name string, send request, detail string) badCase {
		return badCase{name, send, http.StatusBadRequest, "invalid_request", detail}
	}
	s.requireRefused(t, []badCase{
		bad("empty", order(""), "The request needs a JSON body.").typed(),
		bad("malformed", order(`{"customer_id":}`), "The body is not valid JSON (at byte 15)."),
		bad("cut", order(`{"customer_id":"`), ""),
		bad("two values", order(`{} {}`), "The body has something after its JSON value."),
		bad("not an object", order(`[1]`), "The body must be an object."),
		bad("null", order(`null`), "The body must not be null."),
		bad("deep", order(strings.Repeat(`{"a":`, 40)+"1"+strings.Repeat("}", 40)), "The body is nested more than 32 levels deep."),
		bad("duplicate", order(`{"customer_id":"a","customer_id":"b"}`), "customer_id is given twice."),
		bad("invalid UTF-8", order("{\"customer_id\":\"\xff\"}"), "The body is not valid UTF-8."),
		bad("nothing in it", order(`{}`), "customer_id is required."),
		bad("unknown field", order(`{"customer_id":"`+customer+`","items":[{"sku":"mug-white","quantity":1}],"coupon":"x"}`), "coupon is not a known field."),
		bad("field in other case", items(`[{"SKU":"mug-white","quantity":1}]`), "items[0].SKU is not a known field."),
		bad("unknown field inside", items(`[{"sku":"mug-white","quantity":1,"colour":"red"}]`), "items[0].colour is not a known field."),
		bad("text for a number", quantity(`"1"`), "items[0].quantity must be a whole number of 32 bits."),
		bad("number for text", items(`[{"sku":1,"quantity":1}]`), "items[0].sku must be a string."),
		bad("object for a list", items(`{}`), "items must be an array."),
		bad("null in it", quantity(`null`), "items[0].quantity must not be null."),
		bad("no items", items(`[]`), "items must have at least 1 item."),
		bad("51 items", items("["+strings.Repeat(`{"sku":"mug-white","quantity":1},`, 50)+`{"sku":"mug-white","quantity":1}]`), "items must have at most 50 items."),
		bad("zero", quantity("0"), "items[0].quantity must be at least 1."),
		bad("negative", quantity("-1"), "items[0].quantity must be at least 1."),
		bad("too many", quantity("1001"), "items[0].quantity must be at most 1000."),
		bad("past 32 bits", quantity("2147483648"), ""),
		bad("past 64 bits", quantity("9223372036854775808"), "items[0].quantity is out of range."),
		bad("1e30", quantity("1e30"), "items[0].quantity must be a whole number, written without fraction or exponent."),
		bad("a fraction", quantity("1.0"), "items[0].quantity must be a whole number, written without fraction or exponent."),
		bad("bad SKU", items(`[{"sku":"Mug White","quantity":1}]`), "items[0].sku must match ^[a-z0-9][a-z0-9-]{0,63}$."),
		bad("bad UUID", order(`{"customer_id":"42","items":[{"sku":"mug-white","quantity":1}]}`), "customer_id must be a UUID."),
		bad("odd UUID", order(`{"customer_id":"{`+customer+`}","items":[{"sku":"mug-white","quantity":1}]}`), "customer_id must be a UUID."),
		{"SKU twice", items(`[{"sku":"mug-white","quantity":1},{"sku":"mug-white","quantity":1}]`), 400, "duplicate_item", ""},
		{"unknown SKU", items(`[{"sku":"no-such-thing","quantity":1}]`), 422, "unknown_product", ""},
		{"unknown customer", order(orderOf(uuid.New(), "mug-white", 1)), 404, "customer_not_found", ""},
	})
}

// typed is a case whose empty body has a Content-Type.
func (c badCase) typed() badCase {
	c.send.edit = with("Content-Type", "application/json")
	return c
}

func TestValidation_RefusesOversizedAndMistypedBodies(t *testing.T) {
	t.Parallel()
	s := setup(t)
	big := `{"name":"` + strings.Repeat("x", 64<<10) + `","email":"a@example.com"}`
	post := func(body string, edit func(*http.Request)) request {
		return request{method: "POST", path: "/v1/customers", key: newKey(), body: body, edit: edit}
	}
	chunked := func(r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(big)), -1
	}
	fine := `{"name":"Ada","email":"a@example.com"}`
	s.requireRefused(t, []badCase{
		{"too large", post(big, nil), 413, "body_too_large", "The request body must not exceed 65536 bytes."},
		{"too large, in chunks", post(fine, chunked), 413, "body_too_large", "The request body must not exceed 65536 bytes."},
		{"a form", post(fine, with("Content-Type", "application/x-www-form-urlencoded")), 415, "unsupported_media_type", ""},
		{"no type", post(fine, without("Content-Type")), 415, "unsupported_media_type", ""},
		{"a type that is none", post(fine, with("Content-Type", ";")), 415, "unsupported_media_type", ""},
		{"compressed", post(fine, with("Content-Encoding", "gzip")), 415, "unsupported_media_type", ""},
	})
	answer := s.do(post(fine, with("Content-Type", "Application/JSON; charset=UTF-8")))
	require.Equal(t, http.StatusCreated, answer.status, answer.body)
}

func TestValidation_RefusesBadMoney(t *testing.T) {
	t.Parallel()
	s := setup(t)
	customer := s.customer().ID.String()
	topUp := func(amount, currency string) request {
		return request{method: "POST", path: "/v1/customers/" + customer + "/top-ups", key: newKey(),
			body: `{"amount":{"amount":` + amount + `,"currency":` + currency + `}}`}
	}
	bad := func(name string, send request, detail string) badCase {
		return badCase{name, send, 400, "invalid_request", detail}
	}
	s.requireRefused(t, []badCase{
		bad("zero", topUp("0", `"USD"`), "amount.amount must be at least 1."),
		bad("negative", topUp("-4200", `"USD"`), "amount.amount must be at least 1."),
		bad("too much", topUp("1000000000001", `"USD"`), "amount.amount must be at most 1000000000000."),
		bad("past 64 bits", topUp("9223372036854775808", `"USD"`), "amount.amount is out of range."),
		bad("way past 64 bits", topUp("1e300", `"USD"`), ""),
		bad("text", topUp(`"4200"`, `"USD"`), "amount.amount must be a whole number."),
		bad("currency in lower case", topUp("1", `"usd"`), "amount.currency must match ^[A-Z]{3}$."),
		bad("no currency of ISO 4217", topUp("1", `"ZZZ"`), "amount.currency must be a currency of ISO 4217 with minor units, such as USD."),
		bad("no currency to pay in", topUp("1", `"XXX"`), ""),
		bad("a currency without minor units", topUp("1", `"XAU"`), ""),
		bad("a currency of the past", topUp("1", `"DEM"`), ""),
		bad("no currency", request{method: "POST", path: "/v1/customers/" + customer + "/top-ups", key: newKey(), body: `{"amount":{"amount":1}}`}, "amount.currency is required."),
	})
	require.Equal(t, 422, s.do(topUp("1", `"EUR"`)).status)
}

func TestCardNumber_IsRefusedInAnyField(t *testing.T) {
	t.Parallel()
	s := setup(t)
	order := s.order(s.customer().ID).ID
	number := "4242 4242 4242 4242"
	pay := func(body string) request {
		return request{method: "POST", path: payments(order), key: newKey(), body: body}
	}
	address := `{"shipping_address":{"line1":"` + number + `","city":"London","postal_code":"N1","country":"GB"}}`
	var cases []badCase
	for name, send := range map[string]request{
		"token":          pay(card("4242424242424242")),
		"unknown field":  pay(`{"method":{"type":"card","token":"tok_visa","number":"4242424242424242"}}`),
		"field's name":   pay(`{"method":{"type":"wallet"},"4242424242424242":1}`),
		"customer":       {method: "POST", path: "/v1/customers", key: newKey(), body: `{"name":"Ada ` + number + `","email":"a@example.com"}`},
		"address":        {method: "PATCH", path: "/v1/orders/" + order.String(), key: newKey(), body: address},
		"product's name": {method: "PUT", path: "/v1/products/mug", body: `{"name":"` + number + `","price":{"amount":1,"currency":"USD"},"stock":1}`},
		"product's SKU":  {method: "PUT", path: "/v1/products/4242424242424242", body: `{"name":"Mug","price":{"amount":1,"currency":"USD"},"stock":1}`},
		"without a key":  {method: "PATCH", path: "/v1/customers/" + uuid.NewString(), body: `{"name":"` + number + `"}`},
	} {
		cases = append(cases, badCase{name, send, 400, "card_number_refused", ""})
	}
	s.requireRefused(t, cases)
}

func TestValidation_RefusesBadParameters(t *testing.T) {
	t.Parallel()
	s := setup(t)
	id, product := uuid.NewString(), `{"name":"Mug","price":{"amount":1,"currency":"USD"},"stock":1}`
	get := func(path string) request { return request{method: "GET", path: path} }
	bad := func(name string, send request, detail string) badCase {
		return badCase{name, send, 400, "invalid_request", detail}
	}
	s.requireRefused(t, []badCase{
		bad("path", get("/v1/orders/42"), "order_id must be a UUID."),
		bad("path of a write", request{method: "POST", path: "/v1/orders/42/payments", key: newKey(), body: card("tok_visa")}, "order_id must be a UUID."),
		bad("SKU", get("/v1/products/TEE"), "sku must match ^[a-z0-9][a-z0-9-]{0,63}$."),
		bad("SKU with a slash", request{method: "PUT", path: "/v1/products/a%2Fb", body: product}, ""),
		bad("SKU with a NUL", request{method: "PUT", path: "/v1/products/a%00", body: product}, ""),
		bad("limit 0", get("/v1/orders?limit=0"), "limit must be at least 1."),
		bad("limit 101", get("/v1/products?limit=101"), "limit must be at most 100."),
		bad("limit past 32 bits", get("/v1/products?limit=2147483648"), "limit must be a whole number of 32 bits."),
		bad("limit that is text", get("/v1/products?limit=ten"), "limit must be a whole number of 32 bits."),
		bad("limit with an exponent", get("/v1/products?limit=1e1"), "limit must be a whole number of 32 bits."),
		bad("limit without a value", get("/v1/products?limit="), ""),
		bad("limit with a broken escape", get("/v1/products?limit=%zz"), "The query is not valid."),
		bad("a semicolon in the query", get("/v1/products?limit=1;cursor=2"), "The query is not valid."),
		bad("limit twice", get("/v1/products?limit=1&limit=2"), ""),
		bad("customer", get("/v1/orders?customer_id=42"), "customer_id must be a UUID."),
		{"cursor", get("/v1/orders?cursor=garbage"), 400, "invalid_cursor", ""},
		{"cursor without a value", get("/v1/orders?cursor="), 400, "invalid_cursor", ""},
		{"cursor too long", get("/v1/orders?cursor=" + strings.Repeat("x", 201)), 400, "invalid_cursor", ""},
		{"cursor of a UUID", get("/v1/orders?cursor=" + id), 400, "invalid_cursor", ""},
		{"cursor of products", get("/v1/products?cursor=bzE6eA"), 400, "invalid_cursor", ""},
	})
}

func TestValidation_ExplainsWhatItRefuses(t *testing.T) {
	t.Parallel()
	s := setup(t)
	customer := s.customer().ID
	order := s.order(customer).ID
	pay := func(body string) request {
		return request{method: "POST", path: payments(order), key: newKey(), body: body}
	}
	create := func(body string) request {
		return request{method: "POST", path: "/v1/customers", key: newKey(), body: body}
	}
	patch := func(path, body string) request {
		return request{method: "PATCH", path: path, key: newKey(), body: body}
	}
	s.requireRefused(t, []badCase{
		{"card without a token", pay(`{"method":{"type":"card"}}`), 400, "invalid_request", "method must have a token for a card, and none for a wallet."},
		{"wallet with a token", pay(`{"method":{"type":"wallet","token":"tok_visa"}}`), 400, "invalid_request", ""},
		{"unknown method", pay(`{"method":{"type":"cash"}}`), 400, "invalid_request", "method.type must be one of card, wallet."},
		{"blank name", create(`{"name":" ","email":"a@example.com"}`), 400, "invalid_name", ""},
		{"name with a NUL", create(`{"name":"a\u0000","email":"a@example.com"}`), 400, "invalid_request", "name must not contain the character U+0000."},
		{"name with a line break", create(`{"name":"a\nb","email":"a@example.com"}`), 400, "invalid_request", "name must not contain the character U+000A."},
		{"name with a C1 control", create(`{"name":"a\u0085","email":"a@example.com"}`), 400, "invalid_request", ""},
		{"name that is turned around", create(`{"name":"a\u202eb","email":"a@example.com"}`), 400, "invalid_request", "name must not contain the character U+202E."},
		{"name with an isolate", create(`{"name":"a\u2066b","email":"a@example.com"}`), 400, "invalid_request", ""},
		{"name with a mark of direction", create(`{"name":"a\u200fb","email":"a@example.com"}`), 400, "invalid_request", ""},
		{"name with a line separator", create(`{"name":"a\u2028b","email":"a@example.com"}`), 400, "invalid_request", ""},
		{"e-mail that is turned around", create(`{"name":"Ada","email":"a\u202eb@example.com"}`), 400, "invalid_request", ""},
		{"new name that is turned around", patch("/v1/customers/"+customer.String(), `{"name":"a\u202eb"}`), 400, "invalid_request", ""},
		{"address that is turned around", patch("/v1/orders/"+order.String(), `{"shipping_address":{"line1":"a\u202eb","city":"a","postal_code":"1","country":"NL"}}`), 400, "invalid_request", "shipping_address.line1 must not contain the character U+202E."},
		{"product that is turned around", request{method: "PUT", path: "/v1/products/mug", body: `{"name":"a\u202eb","price":{"amount":1,"currency":"USD"},"stock":1}`}, 400, "invalid_request", ""},
		{"e-mail that is none", create(`{"name":"Ada","email":"ada at home"}`), 400, "invalid_email", ""},
		{"nothing to change", patch("/v1/customers/"+customer.String(), `{}`), 400, "invalid_request", "The body must have at least 1 field."},
		{"status out of reach", patch("/v1/orders/"+order.String(), `{"status":"paid"}`), 400, "invalid_request", "status must be one of cancelled."},
	})
}

func TestValidation_RefusesBadKeys(t *testing.T) {
	t.Parallel()
	s := setup(t)
	body := orderOf(s.customer().ID, "mug-white", 1)
	post := func(key string, edit func(*http.Request)) request {
		return request{method: "POST", path: "/v1/orders", key: key, body: body, edit: edit}
	}
	twice := func(r *http.Request) { r.Header["Idempotency-Key"] = []string{"a", "b"} }
	s.requireRefused(t, []badCase{
		{"missing", post("", nil), 400, "idempotency_key_missing", "Idempotency-Key header is required"},
		{"too long", post(strings.Repeat("k", 256), nil), 400, "idempotency_key_too_long", "Idempotency-Key must not exceed 255 characters"},
		{"empty", post("", with("Idempotency-Key", "")), 400, "idempotency_key_malformed", ""},
		{"twice", post("", twice), 400, "idempotency_key_malformed", ""},
		{"not ASCII", post("clé", nil), 400, "idempotency_key_malformed", ""},
		{"bad body first", request{method: "POST", path: "/v1/orders", body: "{"}, 400, "invalid_request", ""},
	})
}

// Keys are the library's to judge, so the generated binding of the header must take whatever it
// takes.
func TestKey_MayBeUnusual(t *testing.T) {
	t.Parallel()
	s := setup(t)
	customer := s.customer().ID
	for _, key := range []string{`"a,b"`, `"a b"`, "50%", "%zz", "a=b;c", "true", "0", "[1]", "{}", `"quo\"ted"`, strings.Repeat("k", 255)} {
		s.post("/v1/orders", key, orderOf(customer, "mug-white", 1), http.StatusCreated)
		s.do(request{method: "PATCH", path: "/v1/customers/" + customer.String(), key: key + "1", body: `{"name":"Ada"}`})
	}
	first := s.post("/v1/orders", "bare", orderOf(customer, "mug-white", 1), http.StatusCreated)
	requireSame(t, first, s.post("/v1/orders", `"bare"`, orderOf(customer, "mug-white", 1), http.StatusCreated))
}

func TestAuthentication_NeedsAnAPIKey(t *testing.T) {
	t.Parallel()
	s := setup(t)
	hash := sha256.Sum256([]byte("sk_test_revoked"))
	_, err := s.pool.Exec(s.ctx, `INSERT INTO api_keys (hash, account_id, revoked_at) SELECT $1, id, now() FROM accounts LIMIT 1`, hash[:])
	require.NoError(t, err)
	body := `{"name":"Ada","email":"a@example.com"}`
	for name, edit := range map[string]func(*http.Request){
		"none": without("Authorization"), "unknown": as("sk_test_unknown"), "revoked": as("sk_test_revoked"),
		"basic": with("Authorization", "Basic c2s6"), "empty": with("Authorization", "Bearer "),
	} {
		for _, send := range []request{
			{method: "GET", path: "/v1/products", edit: edit},
			{method: "POST", path: "/v1/customers", key: newKey(), body: body, edit: edit},
			{method: "POST", path: "/v1/customers", body: "{", edit: edit}, // before all else
		} {
			s.requireRefused(t, []badCase{{name, send, 401, "unauthorized", ""}})
			require.Contains(t, s.do(send).header.Get("WWW-Authenticate"), "Bearer", name)
		}
	}
}

func TestAccount_SeesOnlyItsOwn(t *testing.T) {
	t.Parallel()
	s := setup(t)
	customer := s.customer().ID
	order := s.order(customer).ID
	payment := s.pay(order).ID
	at := func(method, path, body string) request {
		r := request{method: method, path: path, body: body, edit: as(other)}
		if method != "GET" {
			r.key = newKey()
		}
		return r
	}
	customers, orders, paid := "/v1/customers/"+customer.String(), "/v1/orders/"+order.String(), "/v1/payments/"+payment.String()
	s.requireRefused(t, []badCase{
		{"customer", at("GET", customers, ""), 404, "customer_not_found", ""},
		{"wallet", at("GET", customers+"/wallet", ""), 404, "customer_not_found", ""},
		{"order", at("GET", orders, ""), 404, "order_not_found", ""},
		{"payment", at("GET", paid, ""), 404, "payment_not_found", ""},
		{"payments", at("GET", payments(order), ""), 404, "order_not_found", ""},
		{"refunds", at("GET", paid+"/refunds", ""), 404, "payment_not_found", ""},
		{"change product", at("PATCH", "/v1/products/mine", `{"stock_change":1}`), 404, "product_not_found", ""},
		{"change customer", at("PATCH", customers, `{"name":"Eve"}`), 404, "customer_not_found", ""},
		{"top up", at("POST", customers+"/top-ups", `{"amount":{"amount":1,"currency":"USD"}}`), 404, "customer_not_found", ""},
		{"place order", at("POST", "/v1/orders", orderOf(customer, "mug-white", 1)), 404, "customer_not_found", ""},
		{"change order", at("PATCH", orders, `{"status":"cancelled"}`), 404, "order_not_found", ""},
		{"pay", at("POST", payments(order), card("tok_visa")), 404, "order_not_found", ""},
		{"pay from wallet", at("POST", payments(order), `{"method":{"type":"wallet"}}`), 404, "order_not_found", ""},
		{"refund", at("POST", paid+"/refunds", `{}`), 404, "payment_not_found", ""},
	})
	require.Empty(t, decode[api.OrderPage](s.do(at("GET", "/v1/orders", ""))).Data)
}

func TestRouting_KnowsPathsAndMethods(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for path, allow := range map[string][]string{
		"/v1/orders": {"GET", "HEAD", "POST"}, "/v1/orders/42": {"GET", "HEAD", "PATCH"}, "/v1/products/a": {"GET", "HEAD", "PATCH", "PUT"}, "/v1/orders/42/payments": {"GET", "HEAD", "POST"},
	} {
		send := request{method: "DELETE", path: path, edit: without("Authorization")}
		s.requireRefused(t, []badCase{{path, send, 405, "method_not_allowed", ""}})
		require.Equal(t, []string{strings.Join(allow, ", ")}, s.do(send).header.Values("Allow"))
	}
	for _, path := range []string{"/nowhere", "/v1", "/v1/", "/v2/orders", "/v1/orders/", "/v1/orders/42/refunds", "/v1/nothing", "/v1/a%2Fb"} {
		s.requireRefused(t, []badCase{{path, request{method: "GET", path: path, edit: without("Authorization")}, 404, "route_not_found", ""}})
	}
}

// What the domain refuses for good is kept under the key, and changes nothing.
func TestFinalError_IsKeptUnderTheKey(t *testing.T) {
	t.Parallel()
	s := setup(t)
	customer := s.customer().ID
	paid, cancelled := s.order(customer), s.order(customer)
	payment := s.pay(paid.ID)
	s.do(request{method: "PATCH", path: "/v1/orders/" + cancelled.ID.String(), key: newKey(), body: `{"status":"cancelled"}`})
	refunds := "/v1/payments/" + payment.ID.String() + "/refunds"
	for name, c := range map[string]struct {
		method, path, body string
		status             int
		code               string
	}{
		"out of stock":         {"POST", "/v1/orders", orderOf(customer, "limited-print", 11), 409, "out_of_stock"},
		"paid twice":           {"POST", payments(paid.ID), card("tok_visa"), 409, "order_already_paid"},
		"cancelled, then paid": {"POST", payments(cancelled.ID), card("tok_visa"), 409, "order_cancelled"},
		"paid, then cancelled": {"PATCH", "/v1/orders/" + paid.ID.String(), `{"status":"cancelled"}`, 409, "order_already_paid"},
		"refunded too much":    {"POST", refunds, `{"amount":{"amount":2501,"currency":"USD"}}`, 422, "refund_exceeds_payment"},
		"refund in euros":      {"POST", refunds, `{"amount":{"amount":1,"currency":"EUR"}}`, 422, "currency_mismatch"},
		"empty wallet":         {"POST", payments(s.order(customer).ID), `{"method":{"type":"wallet"}}`, 402, "insufficient_funds"},
	} {
		before, key := s.effect(), newKey()
		first := s.do(request{method: c.method, path: c.path, key: key, body: c.body})
		first.problem(c.status, c.code)
		require.False(t, first.replayed(), name)
		second := s.do(request{method: c.method, path: c.path, key: key, body: c.body, replica: 1})
		require.True(t, second.replayed(), name)
		requireSame(t, first, second)
		require.Equal(t, before, s.effect(), name)
	}
	require.Equal(t, int64(10), decode[api.Product](s.get("/v1/products/limited-print")).Stock)
	require.Equal(t, 1, s.charges(paid.ID))
	require.Zero(t, s.charges(cancelled.ID))
}
