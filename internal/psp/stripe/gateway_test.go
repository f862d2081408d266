package stripe

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/psp/gatewaytest"
	"github.com/oncepay/oncepay/internal/psp/stripe/stripetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

func TestGateway(t *testing.T) {
	t.Parallel()
	gatewaytest.Run(t, func(t *testing.T) gatewaytest.Provider {
		s := stripetest.New(t)
		return gatewaytest.Provider{Handler: s, Good: "pm_visa", Declining: "pm_declined", Unknown: "pm_unknown", Moved: s.Moved,
			Open: func(_ *testing.T, url string, timeout time.Duration) gatewaytest.Gateway {
				return NewGateway("sk_test_1", url, timeout, nil)
			}}
	})
}

func start(t *testing.T) (*stripetest.Server, *Gateway) {
	t.Helper()
	s := stripetest.New(t)
	return s, gatewayTo(t, s)
}

func gatewayTo(t *testing.T, server http.Handler) *Gateway {
	t.Helper()
	web := httptest.NewServer(server)
	t.Cleanup(web.Close)
	gateway := NewGateway("sk_test_1", web.URL, patience, nil)
	t.Cleanup(gateway.Close)
	return gateway
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
	charges, _ := s.Moved()
	require.Equal(t, 1, charges)
}

func TestCharge_AfterA500WithoutATraceIsUnknown(t *testing.T) {
	t.Parallel()
	s, gateway := start(t)
	for range 2 {
		requireUnknown(t, gateway.Charge(t.Context(), chargeWith("pm_500_nothing")))
	}
	require.Equal(t, checkout.OutcomeAbsent, gateway.FindCharge(t.Context(), chargeWith("pm_500_nothing")).Outcome)
	charges, _ := s.Moved()
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
	charges, _ := s.Moved()
	require.Equal(t, 1, charges)
}

// While Stripe processes a charge, its ID is known and its outcome is not.
func TestCharge_ProcessingIsUnknownWithItsID(t *testing.T) {
	t.Parallel()
	s, gateway := start(t)
	first := gateway.Charge(t.Context(), chargeWith("pm_processing"))
	requireUnknown(t, first)
	require.Equal(t, "pi_1", first.ProviderID)

	s.Change("pi_1", stripetest.Object{"status": stripetest.Succeeded, "amount_received": int64(4200)}, "payment_intent.succeeded")
	byID := chargeWith("pm_processing")
	byID.ProviderID, byID.Begun = first.ProviderID, time.Time{}
	s.Asked()
	require.Equal(t, checkout.OutcomeApproved, gateway.FindCharge(t.Context(), byID).Outcome)
	require.Equal(t, []string{"GET /v1/payment_intents/pi_1"}, s.Asked())
	byID.ProviderID = "pi_none"
	requireUnknown(t, gateway.FindCharge(t.Context(), byID))
}

// Nobody is there who could confirm the payment, so that it must not wait for that.
func TestCharge_ThatNeedsItsOwnerIsDeclined(t *testing.T) {
	t.Parallel()
	_, gateway := start(t)
	got := gateway.Charge(t.Context(), chargeWith("pm_authentication"))
	require.Equal(t, checkout.GatewayResult{Outcome: checkout.OutcomeDeclined, ProviderID: "pi_1", DeclineCode: "authentication_required"}, got)
}

// While a bank works on a refund, its ID is known and its outcome is not.
func TestRefund_PendingIsUnknownWithItsID(t *testing.T) {
	t.Parallel()
	s, gateway := start(t)
	request := checkout.RefundRequest{IdempotencyKey: "refund-1", Reference: "refund-1", Amount: checkout.Money{Amount: 4200, Currency: "USD"},
		ChargeID: gateway.Charge(t.Context(), chargeWith("pm_visa")).ProviderID}
	s.Refund(stripetest.Pending)
	first := gateway.Refund(t.Context(), request)
	requireUnknown(t, first)
	require.Equal(t, "re_1", first.ProviderID)

	s.Change("re_1", stripetest.Object{"status": stripetest.Succeeded}, "refund.updated")
	requireUnknown(t, gateway.Refund(t.Context(), request)) // the kept answer has not changed
	request.ProviderID = first.ProviderID
	s.Asked()
	require.Equal(t, checkout.OutcomeApproved, gateway.FindRefund(t.Context(), request).Outcome)
	require.Equal(t, []string{"GET /v1/refunds/re_1"}, s.Asked())
	request.ProviderID = "re_none"
	requireUnknown(t, gateway.FindRefund(t.Context(), request))
}

// Stripe refuses a key while the first request with it is at work. That request may charge.
func TestCharge_WhileAnotherRequestWithTheKeyRunsIsUnknown(t *testing.T) {
	t.Parallel()
	s, gateway := start(t)
	begun, finish := make(chan struct{}), make(chan struct{})
	s.Working = func() { close(begun); <-finish }
	first := make(chan checkout.GatewayResult)
	go func() { first <- gateway.Charge(t.Context(), chargeWith("pm_visa")) }()
	<-begun
	second := gateway.Charge(t.Context(), chargeWith("pm_visa"))
	requireUnknown(t, second)
	require.ErrorContains(t, second.Cause, `status 409, type "idempotency_error", code "idempotency_key_in_use"`)
	close(finish)
	charged := <-first
	require.Equal(t, checkout.OutcomeApproved, charged.Outcome, charged.Cause)
	require.Equal(t, charged, gateway.Charge(t.Context(), chargeWith("pm_visa")))
	charges, _ := s.Moved()
	require.Equal(t, 1, charges)
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
	s.Change("pi_1", stripetest.Object{"created": time.Now().Add(sentFor).Unix()}, "payment_intent.updated")
	require.Equal(t, checkout.OutcomeApproved, gateway.FindCharge(t.Context(), chargeWith("pm_visa")).Outcome, "sent a day later")
}

// A list that fails on a later page proves no absence.
func TestFindCharge_HalfAListIsUnknown(t *testing.T) {
	t.Parallel()
	s := stripetest.New(t)
	gateway := gatewayTo(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("starting_after") {
			stripetest.Write(w, 503, stripetest.Failed("api_error", "", ""))
			return
		}
		s.ServeHTTP(w, r)
	}))
	for i := range pageSize + 1 {
		other := chargeWith("pm_visa")
		other.IdempotencyKey = fmt.Sprintf("payment-of-another-%d", i)
		require.Equal(t, checkout.OutcomeApproved, gateway.Charge(t.Context(), other).Outcome)
	}
	requireUnknown(t, gateway.FindCharge(t.Context(), chargeWith("pm_visa")))
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
	require.Empty(t, s.Asked())
}
