package stripe

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/psp/gatewaytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

func TestGateway(t *testing.T) {
	t.Parallel()
	gatewaytest.Run(t, func(t *testing.T) gatewaytest.Provider {
		s := newServer(t)
		return gatewaytest.Provider{Handler: s, Good: "pm_visa", Declining: "pm_declined", Unknown: "pm_unknown", Moved: s.moved,
			Open: func(_ *testing.T, url string, timeout time.Duration) gatewaytest.Gateway {
				return NewGateway("sk_test_1", url, timeout, nil)
			}}
	})
}

func start(t *testing.T) (*server, *Gateway) {
	t.Helper()
	s := newServer(t)
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	gateway := NewGateway("sk_test_1", web.URL, patience, nil)
	t.Cleanup(gateway.Close)
	return s, gateway
}

func chargeWith(token string) checkout.ChargeRequest {
	return checkout.ChargeRequest{IdempotencyKey: "payment-1", Amount: checkout.Money{Amount: 4200, Currency: "USD"}, Reference: "order-1",
		Token: token, Begun: time.Now()}
}

func requireUnknown(t *testing.T, got checkout.GatewayResult) {
	t.Helper()
	require.Equal(t, checkout.OutcomeUnknown, got.Outcome)
	require.ErrorContains(t, got.Cause, "at Stripe")
	require.NotContains(t, got.Cause.Error(), "4242", "what the client sent is not for the log")
}

// Stripe repeats its 500 under the key for a day: only a look-up says what became of the charge.
func TestCharge_AfterA500IsLookedUp(t *testing.T) {
	t.Parallel()
	s, gateway := start(t)
	for range 2 {
		result := gateway.Charge(t.Context(), chargeWith("pm_500"))
		require.Equal(t, checkout.OutcomeApproved, result.Outcome, result.Cause)
		require.Equal(t, "pi_1", result.ProviderID)
	}
	charges, _ := s.moved()
	require.Equal(t, 1, charges)
}

func TestCharge_AfterA500WithoutATraceIsUnknown(t *testing.T) {
	t.Parallel()
	s, gateway := start(t)
	for range 2 {
		requireUnknown(t, gateway.Charge(t.Context(), chargeWith("pm_500_nothing")))
	}
	require.Equal(t, checkout.OutcomeAbsent, gateway.FindCharge(t.Context(), chargeWith("pm_500_nothing")).Outcome)
	charges, _ := s.moved()
	require.Zero(t, charges)
}

// A refusal whose cause is not the client's card never declines a payment: a wrong setting of ours
// would end every payment of the shop.
func TestCharge_OurFaultIsUnknown(t *testing.T) {
	t.Parallel()
	for _, token := range []string{"pm_busy", "pm_expired_key", "pm_misconfigured"} {
		_, gateway := start(t)
		requireUnknown(t, gateway.Charge(t.Context(), chargeWith(token)))
	}
}

func TestCharge_AnotherRequestUnderTheKeyIsUnknown(t *testing.T) {
	t.Parallel()
	s, gateway := start(t)
	require.Equal(t, checkout.OutcomeApproved, gateway.Charge(t.Context(), chargeWith("pm_visa")).Outcome)
	other := chargeWith("pm_visa")
	other.Amount.Amount++
	requireUnknown(t, gateway.Charge(t.Context(), other))
	requireUnknown(t, gateway.FindCharge(t.Context(), other))
	charges, _ := s.moved()
	require.Equal(t, 1, charges)
}

// While Stripe processes a charge, its ID is known and its outcome is not.
func TestCharge_ProcessingIsUnknownWithItsID(t *testing.T) {
	t.Parallel()
	s, gateway := start(t)
	first := gateway.Charge(t.Context(), chargeWith("pm_processing"))
	requireUnknown(t, first)
	require.Equal(t, "pi_1", first.ProviderID)

	s.intents[0]["status"], s.intents[0]["amount_received"] = "succeeded", int64(4200)
	byID := chargeWith("pm_processing")
	byID.ProviderID, byID.Begun = first.ProviderID, time.Time{}
	require.Equal(t, checkout.OutcomeApproved, gateway.FindCharge(t.Context(), byID).Outcome)
	byID.ProviderID = "pi_none"
	requireUnknown(t, gateway.FindCharge(t.Context(), byID))
}

func TestFindCharge_OfAnotherTimeIsNotListed(t *testing.T) {
	t.Parallel()
	s, gateway := start(t)
	require.Equal(t, checkout.OutcomeApproved, gateway.Charge(t.Context(), chargeWith("pm_visa")).Outcome)
	request := chargeWith("pm_visa")
	request.Begun = time.Now().Add(clockSkew / 2)
	require.Equal(t, checkout.OutcomeApproved, gateway.FindCharge(t.Context(), request).Outcome, "clocks differ")
	request.Begun = time.Time{}
	requireUnknown(t, gateway.FindCharge(t.Context(), request))
	s.intents[0]["created"] = time.Now().Add(sentFor).Unix()
	require.Equal(t, checkout.OutcomeApproved, gateway.FindCharge(t.Context(), chargeWith("pm_visa")).Outcome, "sent a day later")
}

// A list that fails on a later page proves no absence.
func TestFindCharge_HalfAListIsUnknown(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for range pageSize + 1 {
		s.act(postOf(t, "pm_visa"))
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("starting_after") {
			write(w, 503, failed("api_error", "", ""))
			return
		}
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	gateway := NewGateway("sk_test_1", web.URL, patience, nil)
	t.Cleanup(gateway.Close)
	requireUnknown(t, gateway.FindCharge(t.Context(), chargeWith("pm_visa")))
}

func postOf(t *testing.T, token string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/payment_intents", http.NoBody)
	r.PostForm = map[string][]string{"amount": {"1"}, "currency": {"usd"}, "payment_method": {token}}
	return r
}

func TestRefund_OfMoreThanIsLeftIsRefused(t *testing.T) {
	t.Parallel()
	_, gateway := start(t)
	charge := gateway.Charge(t.Context(), chargeWith("pm_visa"))
	result := gateway.Refund(t.Context(), checkout.RefundRequest{IdempotencyKey: "refund-1", ChargeID: charge.ProviderID, Reference: "refund-1",
		Amount: checkout.Money{Amount: 4201, Currency: "USD"}})
	require.Equal(t, checkout.GatewayResult{Outcome: checkout.OutcomeAbsent, DeclineCode: "refund_exceeds_charge"}, result)
}

func TestCharge_OfAnotherKindOfTokenSendsNothing(t *testing.T) {
	t.Parallel()
	s, gateway := start(t)
	require.Equal(t, checkout.GatewayResult{Outcome: checkout.OutcomeAbsent, DeclineCode: invalidToken}, gateway.Charge(t.Context(), chargeWith("tok_visa")))
	require.Empty(t, s.intents)
}
