package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
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
