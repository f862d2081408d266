package psp

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/checkout"
)

// TestFindCharge_SendsNothing asks a real simulator about what it charged, declined, and never had.
func TestFindCharge_SendsNothing(t *testing.T) {
	t.Parallel()
	p := startProvider(t, patience)
	request := chargeWith("tok_visa")
	require.Equal(t, absent(notCharged), p.gateway.FindCharge(t.Context(), request))
	charged := p.gateway.Charge(t.Context(), request)
	require.Equal(t, charged, p.gateway.FindCharge(t.Context(), request))
	other := chargeWith("tok_declined")
	other.IdempotencyKey = "key-2"
	require.Equal(t, p.gateway.Charge(t.Context(), other), p.gateway.FindCharge(t.Context(), other))
	sent := p.wire.Load()

	another := request
	another.Amount.Amount++
	require.Equal(t, checkout.OutcomeUnknown, p.gateway.FindCharge(t.Context(), another).Outcome, "the key's charge has another amount")
	refund := refundOf(charged.ProviderID, "refund-1", 100)
	require.Equal(t, absent(notRefunded), p.gateway.FindRefund(t.Context(), refund))
	require.Equal(t, sent, p.wire.Load())
	require.Equal(t, p.gateway.Refund(t.Context(), refund), p.gateway.FindRefund(t.Context(), refund))
}

func TestFindCharge_IsUnknownUnlessTheListIsClear(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(http.ResponseWriter){
		"not found": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"data":[]}`)
		},
		"no list": func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{}`) },
		"garbage": func(w http.ResponseWriter) { _, _ = io.WriteString(w, `<html>`) },
		"pending": func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, `{"data":[{"id":"ch_1","idempotency_key":"key-1","amount":4200,"currency":"USD","reference":"order-1","status":"pending"}]}`)
		},
	} {
		server := quiet(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w) }))
		result := gatewayTo(t, server.URL, patience).FindCharge(t.Context(), chargeWith("tok_visa"))
		require.Equal(t, checkout.OutcomeUnknown, result.Outcome, name)
		require.Error(t, result.Cause, name)
	}
}

// TestCharge_SaysNothingFinalOfAnUnknownToken: a provider that checks the token before the key says
// so about a charge that it made while the token was valid.
func TestCharge_SaysNothingFinalOfAnUnknownToken(t *testing.T) {
	t.Parallel()
	got := answering(t, http.StatusBadRequest, `{"error":{"code":"unknown_token"}}`).Charge(t.Context(), chargeWith("tok_visa"))
	require.Equal(t, absent(invalidToken), got)
}
