package psp

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/psp/gatewaytest"
)

func TestCharge_FollowsTheToken(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		token   string
		outcome checkout.Outcome
		code    string
		charged int
	}{
		{"tok_visa", checkout.OutcomeApproved, "", 1},
		{"tok_mastercard", checkout.OutcomeApproved, "", 1},
		{"tok_slow_1s", checkout.OutcomeApproved, "", 1},
		{"tok_declined", checkout.OutcomeDeclined, "card_declined", 0},
		{"tok_insufficient_funds", checkout.OutcomeDeclined, "insufficient_funds", 0},
		{"tok_nonsense", checkout.OutcomeAbsent, "invalid_token", 0},
		{"tok_slow_61s", checkout.OutcomeAbsent, "invalid_token", 0},
	} {
		t.Run(c.token, func(t *testing.T) {
			t.Parallel()
			p := startProvider(t, patience)
			first := p.gateway.Charge(t.Context(), chargeWith(c.token))
			require.Equal(t, c.outcome, first.Outcome, first.Cause)
			require.Equal(t, c.code, first.DeclineCode)
			require.Equal(t, c.charged == 1, first.ProviderID != "")
			require.Equal(t, first, p.gateway.Charge(t.Context(), chargeWith(c.token)), "a retry learns the same")
			require.Len(t, succeeded(p.list("/v1/charges?reference=order-1")), c.charged)
			require.EqualValues(t, 2, p.wire.Load())
		})
	}
}

// The trouble tokens: unknown first, and approved when asked again with the same key, also by way
// of a provider that was restarted in between.
func TestCharge_UnknownFirstIsApprovedLater(t *testing.T) {
	t.Parallel()
	for token, chargedAtFirst := range map[string]int{"tok_charged_no_answer": 1, "tok_error_first": 0} {
		for _, restart := range []bool{false, true} {
			t.Run(token+"/restart="+strconv.FormatBool(restart), func(t *testing.T) {
				t.Parallel()
				p := startProvider(t, patience)
				first := p.gateway.Charge(t.Context(), chargeWith(token))
				requireUnknown(t, first)
				require.EqualValues(t, 1, p.wire.Load())
				require.Len(t, p.list("/v1/charges"), chargedAtFirst)
				if restart {
					p.restart()
				}
				second := p.gateway.Charge(t.Context(), chargeWith(token))
				require.Equal(t, checkout.OutcomeApproved, second.Outcome, second.Cause)
				require.Equal(t, []listed{{second.ProviderID, "succeeded", 2}}, p.list("/v1/charges"))
			})
		}
	}
}

func TestCharge_CancelledIsUnknown(t *testing.T) {
	t.Parallel()
	p := startProvider(t, patience)
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan checkout.GatewayResult, 1)
	go func() { result <- p.gateway.Charge(ctx, chargeWith("tok_slow_60s")) }()
	require.Eventually(t, func() bool { return len(p.list("/v1/charges")) == 1 }, patience, 5*time.Millisecond)
	cancel()
	cancelled := <-result
	requireUnknown(t, cancelled)
	require.ErrorIs(t, cancelled.Cause, context.Canceled)
}

func TestCharge_WithAReusedKeyIsUnknown(t *testing.T) {
	t.Parallel()
	p := startProvider(t, patience)
	require.Equal(t, checkout.OutcomeApproved, p.gateway.Charge(t.Context(), chargeWith("tok_visa")).Outcome)
	for _, token := range []string{"tok_mastercard", "tok_nonsense"} {
		requireUnknown(t, p.gateway.Charge(t.Context(), chargeWith(token)))
	}
	requireUnknown(t, p.gateway.Refund(t.Context(), refundOf("ch_none", "key-1", 1)))
}

func TestRefund_FollowsTheCharge(t *testing.T) {
	t.Parallel()
	p := startProvider(t, patience)
	charge := p.gateway.Charge(t.Context(), chargeWith("tok_visa")).ProviderID

	first := p.gateway.Refund(t.Context(), refundOf(charge, "refund-a", 4000))
	require.Equal(t, checkout.OutcomeApproved, first.Outcome, first.Cause)
	require.Equal(t, first, p.gateway.Refund(t.Context(), refundOf(charge, "refund-a", 4000)))
	require.Equal(t, []listed{{first.ProviderID, "succeeded", 2}}, p.list("/v1/refunds?charge="+charge))

	refused := p.gateway.Refund(t.Context(), refundOf(charge, "refund-b", 201))
	require.Equal(t, declined("refund_exceeds_charge"), refused)
	euros := refundOf(charge, "refund-c", 1)
	euros.Amount.Currency = "EUR"
	require.Equal(t, declined("currency_mismatch"), p.gateway.Refund(t.Context(), euros))

	requireUnknown(t, p.gateway.Refund(t.Context(), refundOf("ch_none", "refund-d", 1)))
	require.Len(t, succeeded(p.list("/v1/refunds")), 1)
}

func TestCharge_AtAnUnreachableProviderIsUnknown(t *testing.T) {
	t.Parallel()
	p := startProvider(t, patience)
	p.server.Close()
	requireUnknown(t, p.gateway.Charge(t.Context(), chargeWith("tok_visa")))
	requireUnknown(t, gatewayTo(t, "::not a url", patience).Charge(t.Context(), chargeWith("tok_visa")))
}

func requireUnknown(t *testing.T, r checkout.GatewayResult) {
	t.Helper()
	require.Equal(t, checkout.OutcomeUnknown, r.Outcome)
	require.Error(t, r.Cause)
	require.Empty(t, r.ProviderID)
	require.Empty(t, r.DeclineCode)
}

func succeeded(all []listed) (some []listed) {
	for _, e := range all {
		if e.Status == "succeeded" {
			some = append(some, e)
		}
	}
	return some
}

func TestGateway(t *testing.T) {
	t.Parallel()
	gatewaytest.Run(t, func(t *testing.T) gatewaytest.Provider {
		p := startProvider(t, patience)
		return gatewaytest.Provider{Handler: p.sim, Good: "tok_visa", Declining: "tok_declined", Unknown: "tok_nonsense",
			Open: func(t *testing.T, url string, timeout time.Duration) gatewaytest.Gateway {
				return NewGateway(url, timeout)
			},
			Moved: func() (charges, refunds int) {
				return len(succeeded(p.list("/v1/charges"))), len(succeeded(p.list("/v1/refunds")))
			}}
	})
}
