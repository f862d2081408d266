package stripe

import (
	"net/http"
	"testing"

	"github.com/bojanz/currency"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/psp/stripe/stripetest"
)

// TestGateway_ChargesAndRefundsInStripesUnits has an amount of each kind of currency. What Stripe
// then says, in answers, look-ups and events, is about the same amount of ours.
func TestGateway_ChargesAndRefundsInStripesUnits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		amount checkout.Money
		units  int64
	}{
		{checkout.Money{Amount: 1000, Currency: "USD"}, 1000},
		{checkout.Money{Amount: 1000, Currency: "JPY"}, 1000},
		{checkout.Money{Amount: 1050, Currency: "ISK"}, 105000},
		{checkout.Money{Amount: 7, Currency: "UGX"}, 700},
		{checkout.Money{Amount: 105000, Currency: "MGA"}, 1050},
		{checkout.Money{Amount: 1010, Currency: "KWD"}, 1010},
		{checkout.Money{Amount: 1050, Currency: "HUF"}, 1050},
	} {
		s, gateway := start(t)
		charge := chargeWith("pm_visa")
		charge.Amount = c.amount
		charged := gateway.Charge(t.Context(), charge)
		require.Equal(t, checkout.OutcomeApproved, charged.Outcome, "%v %v", c.amount, charged.Cause)
		require.Equal(t, c.units, s.Amount(charged.ProviderID), c.amount)
		require.Equal(t, charged, gateway.FindCharge(t.Context(), charge))
		charge.Amount.Amount++
		requireUnknown(t, gateway.FindCharge(t.Context(), charge))
		event, err := Events{}.Read(s.Event("payment_intent.succeeded"))
		require.NoError(t, err)
		require.Equal(t, c.amount, event.Amount)
		require.Equal(t, charged, event.Result)

		refund := checkout.RefundRequest{IdempotencyKey: "refund-1", ChargeID: charged.ProviderID, Reference: "refund-1", Amount: c.amount}
		refunded := gateway.Refund(t.Context(), refund)
		require.Equal(t, checkout.OutcomeApproved, refunded.Outcome, "%v %v", c.amount, refunded.Cause)
		require.Equal(t, c.units, s.Amount(refunded.ProviderID), c.amount)
		require.Equal(t, refunded, gateway.FindRefund(t.Context(), refund))
		event, err = Events{}.Read(s.Event("refund.created"))
		require.NoError(t, err)
		require.Equal(t, c.amount, event.Amount)
		require.Equal(t, refunded, event.Result)
	}
}

// TestMoneyOf_TakesNoFractionForAnAmount: such an amount is none that we have asked for.
func TestMoneyOf_TakesNoFractionForAnAmount(t *testing.T) {
	t.Parallel()
	require.Equal(t, checkout.Money{Amount: 10, Currency: "ISK"}, moneyOf(1000, "isk"))
	require.Equal(t, checkout.Money{Currency: "ISK"}, moneyOf(1050, "isk"))
}

func TestGateway_SupportsWhatStripeCanCharge(t *testing.T) {
	t.Parallel()
	_, gateway := start(t)
	for amount, want := range map[checkout.Money]bool{
		{Amount: 1001, Currency: "KWD"}: false, {Amount: 1010, Currency: "KWD"}: true,
		{Amount: 1001, Currency: "BHD"}: false, {Amount: 1001, Currency: "JOD"}: false, {Amount: 1001, Currency: "OMR"}: false,
		{Amount: 1001, Currency: "TND"}: false, {Amount: 1010, Currency: "TND"}: true,
		{Amount: 1050, Currency: "MGA"}: false, {Amount: 1100, Currency: "MGA"}: true,
		{Amount: 1, Currency: "ISK"}: true, {Amount: 1, Currency: "UGX"}: true, {Amount: 1, Currency: "JPY"}: true,
		{Amount: 1000, Currency: "IQD"}: false, {Amount: 1000, Currency: "IRR"}: false, {Amount: 1000, Currency: "ZZZ"}: false,
		{Amount: 99_999_999, Currency: "USD"}: true, {Amount: 100_000_000, Currency: "USD"}: false,
		{Amount: 999_999, Currency: "ISK"}: true, {Amount: 1_000_000, Currency: "ISK"}: false,
		{Amount: 9_999_999_900, Currency: "MGA"}: true, {Amount: 10_000_000_000, Currency: "MGA"}: false,
		{Amount: 999_999_999, Currency: "INR"}: true, {Amount: 1_000_000_000, Currency: "INR"}: false,
		{Amount: 999_999_999_999, Currency: "IDR"}: true, {Amount: checkout.MaxAmount, Currency: "IDR"}: false,
		{Amount: checkout.MaxAmount, Currency: "JPY"}: true,
	} {
		require.Equal(t, want, gateway.Supports(amount), amount)
	}
	for _, code := range charged {
		require.True(t, currency.IsValid(code), code)
	}
}

// TestGateway_SendsNoAmountThatStripeCannotHave: Stripe would refuse it, or charge another one.
func TestGateway_SendsNoAmountThatStripeCannotHave(t *testing.T) {
	t.Parallel()
	s, gateway := start(t)
	charge := chargeWith("pm_visa")
	charge.Amount = checkout.Money{Amount: 1001, Currency: "KWD"}
	none := checkout.GatewayResult{Outcome: checkout.OutcomeAbsent, DeclineCode: notSupported}
	require.Equal(t, none, gateway.Charge(t.Context(), charge))
	require.Equal(t, none, gateway.Refund(t.Context(), checkout.RefundRequest{IdempotencyKey: "refund-1", ChargeID: "pi_1", Amount: charge.Amount}))
	require.Empty(t, s.Asked())
}

// TestGateway_BelievesAKeptRejection: the first request with the key was rejected, so that none has
// moved money.
func TestGateway_BelievesAKeptRejection(t *testing.T) {
	t.Parallel()
	s, gateway := start(t)
	first := gateway.Charge(t.Context(), chargeWith("pm_no_intent"))
	require.Equal(t, checkout.GatewayResult{Outcome: checkout.OutcomeAbsent, DeclineCode: "card_declined"}, first)
	again := gateway.Charge(t.Context(), chargeWith("pm_no_intent"))
	require.Equal(t, checkout.GatewayResult{Outcome: checkout.OutcomeDeclined, DeclineCode: "card_declined"}, again)
	charges, _ := s.Moved()
	require.Zero(t, charges)

	replayed := gatewayTo(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Idempotent-Replayed", "true")
		stripetest.Write(w, 400, stripetest.Failed("invalid_request_error", "", "amount"))
	}))
	require.Equal(t, checkout.OutcomeDeclined, replayed.Refund(t.Context(),
		checkout.RefundRequest{IdempotencyKey: "refund-1", ChargeID: "pi_1", Amount: checkout.Money{Amount: 1, Currency: "USD"}}).Outcome)
}
