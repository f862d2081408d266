package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/api"
	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/httpapi"
	"github.com/oncepay/oncepay/internal/postgres"
	"github.com/oncepay/oncepay/internal/psp"
	"github.com/oncepay/oncepay/internal/testenv"
)

// onlyTens is a provider that charges tens of minor units.
type onlyTens struct{ *psp.Gateway }

func (onlyTens) Supports(amount checkout.Money) bool { return amount.Amount%10 == 0 }

// TestOrder_ThatCannotBeChargedIsRefused also has an order of before the provider had its rule.
func TestOrder_ThatCannotBeChargedIsRefused(t *testing.T) {
	t.Parallel()
	on := servers{testenv.Postgres(t), testenv.Redis(t)}
	s := setupOn(t, on)
	put := func(sku, amount string) {
		body := `{"name":"Mug","price":{"amount":` + amount + `,"currency":"KWD"},"stock":9}`
		require.Equal(t, http.StatusCreated, s.do(request{method: "PUT", path: "/v1/products/" + sku, body: body}).status)
	}
	put("odd", "1001")
	put("even", "1010")
	customer := s.customer().ID
	placed := decode[api.Order](s.post("/v1/orders", newKey(), orderOf(customer, "odd", 1), http.StatusCreated))

	gateway := psp.NewGateway(s.pspURL, pspTimeout)
	t.Cleanup(gateway.Close)
	s.replicas[1] = s.startReplica("strict", on, func(c *httpapi.Config) {
		c.Service = checkout.NewService(postgres.NewStore(s.pool, postgres.Options{}), onlyTens{gateway})
	})
	post := func(path, body string) reply {
		return s.do(request{method: "POST", path: path, body: body, key: newKey(), replica: 1})
	}
	before := s.effect()
	refused := post("/v1/orders", orderOf(customer, "odd", 1)).problem(422, "amount_not_supported")
	require.Contains(t, refused.Detail, "1001 KWD")
	post(payments(placed.ID), card("tok_visa")).problem(422, "amount_not_supported")
	require.Equal(t, before, s.effect())
	order := decode[api.Order](post("/v1/orders", orderOf(customer, "even", 1)))
	require.Equal(t, http.StatusCreated, post(payments(order.ID), card("tok_visa")).status)
}

// TestCurrency_OfAnEarlierReleaseIsRead: it is in the rows, and is not written again.
func TestCurrency_OfAnEarlierReleaseIsRead(t *testing.T) {
	t.Parallel()
	s := setup(t)
	customer := s.customer().ID
	order := s.order(customer)
	for _, change := range []string{"UPDATE products SET price_currency = 'ZZZ', version = version + 1 WHERE sku = 'mug-white'", "UPDATE orders SET total_currency = 'XXX'"} {
		_, err := s.pool.Exec(s.ctx, change)
		require.NoError(t, err)
	}
	for path, code := range map[string]string{"/v1/products/mug-white": "ZZZ", "/v1/products": "ZZZ", "/v1/orders/" + order.ID.String(): "XXX", "/v1/orders": "XXX"} {
		answer := s.do(request{method: "GET", path: path})
		require.Equal(t, http.StatusOK, answer.status, path)
		require.Contains(t, answer.body, code, path)
	}
	s.post("/v1/orders", newKey(), orderOf(customer, "mug-white", 1), 422).problem(422, "amount_not_supported")
	s.post(payments(order.ID), newKey(), card("tok_visa"), 422).problem(422, "amount_not_supported")
}
