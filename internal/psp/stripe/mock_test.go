package stripe

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/stripe/stripe-mock/embedded"
	stripemock "github.com/stripe/stripe-mock/server"
	"github.com/stripe/stripe-mock/spec"

	"github.com/oncepay/oncepay/internal/checkout"
)

// Stripe's own mock checks every request against the published description of its API. It keeps
// nothing, so what it answers is about other payments: the gateway must not take that for an
// answer.
func TestGateway_SendsWhatTheDescriptionOfTheAPIAllows(t *testing.T) {
	t.Parallel()
	var description spec.Spec
	require.NoError(t, json.Unmarshal(embedded.OpenAPISpec, &description))
	var fixtures spec.Fixtures
	require.NoError(t, json.Unmarshal(embedded.OpenAPIFixtures, &fixtures))
	mock, err := stripemock.NewStubServer(&fixtures, &description, false, false)
	require.NoError(t, err)
	var accepted, refused atomic.Int64
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		mock.HandleRequest(answer, r)
		if answer.Code == http.StatusOK {
			accepted.Add(1)
		} else {
			refused.Add(1)
			t.Logf("%s %s: %d %s", r.Method, r.URL, answer.Code, answer.Body)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	}))
	t.Cleanup(web.Close)
	gateway := NewGateway("sk_test_1", web.URL, patience, nil)
	t.Cleanup(gateway.Close)

	byID := chargeWith("pm_card_visa")
	byID.ProviderID = "pi_1"
	refund := checkout.RefundRequest{IdempotencyKey: "refund-1", ChargeID: "pi_1", Reference: "refund-1",
		Amount: checkout.Money{Amount: 100, Currency: "USD"}}
	requireUnknown(t, gateway.Charge(t.Context(), chargeWith("pm_card_visa")))
	requireUnknown(t, gateway.FindCharge(t.Context(), byID))
	requireUnknown(t, gateway.Refund(t.Context(), refund))
	require.Equal(t, checkout.OutcomeAbsent, gateway.FindCharge(t.Context(), chargeWith("pm_visa")).Outcome)
	require.Equal(t, checkout.OutcomeAbsent, gateway.FindRefund(t.Context(), refund).Outcome)
	require.Zero(t, refused.Load())
	require.EqualValues(t, 5, accepted.Load())

	unknown := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/refunds", strings.NewReader("no_such_parameter=1"))
	unknown.Header.Set("Authorization", "Bearer sk_test_1")
	unknown.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer := httptest.NewRecorder()
	mock.HandleRequest(answer, unknown)
	require.Equal(t, http.StatusBadRequest, answer.Code, "the mock does look at parameters")
}
