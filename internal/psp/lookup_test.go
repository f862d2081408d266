package psp

import (
	"io"
	"net/http"
	"strconv"
	"strings"
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
	list := func(entries ...string) string { return `{"data":[` + strings.Join(entries, ",") + `]}` }
	other := strings.Replace(approvedReply, "key-1", "key-2", 1)
	for name, answer := range map[string]func(http.ResponseWriter){
		"not found": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"data":[]}`)
		},
		"no list":       func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{}`) },
		"another key's": func(w http.ResponseWriter) { _, _ = io.WriteString(w, list(other)) },
		"two entries":   func(w http.ResponseWriter) { _, _ = io.WriteString(w, list(approvedReply, approvedReply)) },
		"a first page": func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, `{"data":[],"next_cursor":"1"}`)
		},
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

// TestFindCharge_IsOneOfAnyNumber looks one of an order's charges up among more than a reply holds,
// and its refund among as many.
func TestFindCharge_IsOneOfAnyNumber(t *testing.T) {
	t.Parallel()
	p := startProvider(t, patience)
	first := p.gateway.Charge(t.Context(), chargeWith("tok_visa"))
	for i := range 250 {
		other, key := chargeWith("tok_declined"), "other-"+strconv.Itoa(i)
		other.IdempotencyKey = key
		require.Equal(t, checkout.OutcomeDeclined, p.gateway.Charge(t.Context(), other).Outcome)
		require.Equal(t, declined("refund_exceeds_charge"), p.gateway.Refund(t.Context(), refundOf(first.ProviderID, "r-"+key, 9999)))
	}
	request, refund := chargeWith("tok_visa"), refundOf(first.ProviderID, "refund", 1)
	request.IdempotencyKey = "charge"
	charged, refunded := p.gateway.Charge(t.Context(), request), p.gateway.Refund(t.Context(), refund)
	require.Equal(t, charged, p.gateway.FindCharge(t.Context(), request))
	require.Equal(t, refunded, p.gateway.FindRefund(t.Context(), refund))
	request.IdempotencyKey = "never sent"
	require.Equal(t, absent(notCharged), p.gateway.FindCharge(t.Context(), request))
}

func TestFindCharge_NamesAReplyThatIsTooLong(t *testing.T) {
	t.Parallel()
	result := answering(t, http.StatusOK, `{"data":[]}`+strings.Repeat(" ", maxReply)).FindCharge(t.Context(), chargeWith("tok_visa"))
	requireUnknown(t, result)
	require.ErrorContains(t, result.Cause, "exceeds 65536 bytes")
}

// TestCharge_SaysNothingFinalOfAnUnknownToken: a provider that checks the token before the key says
// so about a charge that it made while the token was valid.
func TestCharge_SaysNothingFinalOfAnUnknownToken(t *testing.T) {
	t.Parallel()
	got := answering(t, http.StatusBadRequest, `{"error":{"code":"unknown_token"}}`).Charge(t.Context(), chargeWith("tok_visa"))
	require.Equal(t, absent(invalidToken), got)
}
