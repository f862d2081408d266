package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/api"
)

// TestAmount_IsNeverMoreThanTheDescriptionSays orders and tops up to the limits.
func TestAmount_IsNeverMoreThanTheDescriptionSays(t *testing.T) {
	t.Parallel()
	s := setup(t)
	product := `{"name":"Island","price":{"amount":1000000000000,"currency":"USD"},"stock":1000}`
	require.Equal(t, http.StatusCreated, s.do(request{method: "PUT", path: "/v1/products/island", body: product}).status)
	customer := s.customer().ID
	s.post("/v1/orders", newKey(), orderOf(customer, "island", 1), http.StatusCreated)
	s.post("/v1/orders", newKey(), orderOf(customer, "island", 2), 422).problem(422, "total_too_large")

	_, err := s.pool.Exec(s.ctx, "UPDATE wallets SET balance = 9007199254740990 WHERE customer_id = $1", customer)
	require.NoError(t, err)
	topUps := "/v1/customers/" + customer.String() + "/top-ups"
	s.post(topUps, newKey(), `{"amount":{"amount":1,"currency":"USD"}}`, http.StatusCreated)
	s.post(topUps, newKey(), `{"amount":{"amount":1,"currency":"USD"}}`, 422).problem(422, "balance_too_large")
}

// TestAmount_HasOneSpelling: JSON Schema takes 100.0 for an integer, so the description has to say
// that it is refused. The key is left unused.
func TestAmount_HasOneSpelling(t *testing.T) {
	t.Parallel()
	s := setup(t)
	topUps, key := "/v1/customers/"+s.customer().ID.String()+"/top-ups", newKey()
	before := s.footprint()
	for _, amount := range []string{"100.0", "1e2", "1E+2", "100.00"} {
		refused := s.post(topUps, key, `{"amount":{"amount":`+amount+`,"currency":"USD"}}`, 400).problem(400, "invalid_request")
		require.Contains(t, refused.Detail, "without fraction or exponent", amount)
	}
	require.Equal(t, before, s.footprint())
	s.post(topUps, key, `{"amount":{"amount":100,"currency":"USD"}}`, http.StatusCreated)
	spec, err := api.GetSpec()
	require.NoError(t, err)
	require.Contains(t, spec.Info.Description, "without fraction or exponent")
}
