package httpapi_test

import (
	"fmt"
	"log/slog"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/httpapi"
)

// TestCardNumber_IsRefusedWhereverItWouldBeStoredOrLogged treats key, path, query and body alike.
func TestCardNumber_IsRefusedWhereverItWouldBeStoredOrLogged(t *testing.T) {
	t.Parallel()
	logs := &logLines{}
	s := setup(t, func(c *httpapi.Config) {
		c.Logger = slog.New(slog.NewJSONHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	const number, wide = "4242424242424242", "４２４２４２４２４２４２４２４２"
	body := orderOf(s.customer().ID, "tee-black", 1)
	before := s.footprint()
	for name, r := range map[string]request{
		"key":         {method: "POST", path: "/v1/orders", key: number, body: body},
		"quoted key":  {method: "POST", path: "/v1/orders", key: `"4242 4242 4242 4242"`, body: body},
		"look-up":     {method: "GET", path: "/v1/idempotency-keys/" + number},
		"path":        {method: "GET", path: "/v1/products/" + number},
		"wide path":   {method: "GET", path: "/v1/products/" + url.PathEscape("卡號"+wide)},
		"no route":    {method: "GET", path: "/v2/" + url.PathEscape("卡號"+number)},
		"query":       {method: "GET", path: "/v1/products?note=" + number},
		"query, name": {method: "GET", path: "/v1/products?" + number},
		"body":        {method: "POST", path: "/v1/customers", key: newKey(), body: `{"name":"` + number + `","email":"a@example.com"}`},
		"wide body":   {method: "POST", path: "/v1/customers", key: newKey(), body: `{"name":"卡號` + wide + `","email":"a@example.com"}`},
		"hidden":      {method: "POST", path: "/v1/customers", key: newKey(), body: `{"name":"4242\u200b4242\u200b4242\u200b4242","email":"a@example.com"}`},
	} {
		answer := s.do(r)
		if name != "no route" {
			answer.problem(400, "card_number_refused")
		}
		logged := logs.of(answer.header.Get("X-Request-ID"))
		require.Contains(t, logged, `"http_request"`, name)
		for _, digits := range []string{number, wide, url.PathEscape(wide), "4242 4242", "4242\u200b4242", `4242\u200b4242`} {
			require.NotContains(t, logged, digits, name)
		}
	}
	require.Equal(t, before, s.footprint())
}

// TestCardNumber_IsNoToken has card numbers that touch letters, which the filter takes for an
// identifier elsewhere.
func TestCardNumber_IsNoToken(t *testing.T) {
	t.Parallel()
	s := setup(t)
	order := s.order(s.customer().ID)
	before := s.footprint()
	for _, token := range []string{"tok_4242424242424242", "tok_visa4242424242424242", "pm_4242424242424242", "tok_4242424242424242x", "tok_x_4242_4242_4242_4242",
		"x4242424242424242", "tok_4242-4242-4242-4242", "tok_x1234567890123"} {
		refused := s.post(payments(order.ID), newKey(), card(token), 400).problem(400, "invalid_request")
		require.Equal(t, "method.token must be tok_ or pm_ and letters, digits and underscores, with at most 12 digits in a row.", refused.Detail)
	}
	require.Equal(t, before, s.footprint())
	for _, token := range []string{"tok_1N3T00LkdIwHu7ixt44h1F8k", "tok_123456789012", "tok_000000000000a000000000000_"} {
		s.post(payments(order.ID), newKey(), card(token), 402)
	}
}

// TestCardNumber_NeverStopsARetry has nonces that look like card numbers, as random decimals do.
func TestCardNumber_NeverStopsARetry(t *testing.T) {
	t.Parallel()
	s := setup(t)
	key, order := newKey(), s.order(s.customer().ID)
	pay := func(nonce string) reply {
		return s.post(payments(order.ID), key, fmt.Sprintf(`{"method":{"type":"card","token":"tok_visa"},"request_nonce":%q}`, nonce), 201)
	}
	first := pay("n-1")
	for _, nonce := range []string{"0.5140747198128403", "4242424242424242", "4242 4242 4242 4242"} {
		again := pay(nonce)
		require.True(t, again.replayed(), nonce)
		requireSame(t, first, again)
	}
}
