package stripe

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/checkout"
)

// answering is a Stripe that answers every POST alike, and whose lists are empty.
func answering(t *testing.T, status int, body string) *Gateway {
	t.Helper()
	return gatewayTo(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, `{"object":"list","has_more":false,"data":[]}`)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
}

// inError is an error with the PaymentIntent that it is about, if it is about one.
func inError(kind, code, param, intent string) string {
	if intent != "" {
		intent = `,"payment_intent":` + intent
	}
	return fmt.Sprintf(`{"error":{"type":%q,"code":%q,"param":%q,"message":"4242"%s}}`, kind, code, param, intent)
}

// TestCharge_ReadsAnswers has a line for each row of "How answers are read" in docs/stripe.md, and
// one for each way in which an answer may look like that row and be about something else. An answer
// that is wrongly read as absent or declined has the shopper pay again; one that is wrongly read as
// approved gives goods away.
func TestCharge_ReadsAnswers(t *testing.T) {
	t.Parallel()
	const (
		card, invalid = "card_error", "invalid_request_error"
		refusal       = `,"last_payment_error":{"type":"card_error","code":"card_declined","decline_code":"lost_card"}`
		received      = `,"amount_received":4200`
	)
	whole := intentJSON("succeeded", received)
	replaced := func(before, after string) string {
		changed := strings.Replace(whole, before, after, 1)
		require.NotEqual(t, whole, changed)
		return changed
	}
	for _, c := range []struct {
		name    string
		status  int
		body    string
		outcome checkout.Outcome
		id      string
		code    string
	}{
		{"charged", 200, whole, checkout.OutcomeApproved, "pi_1", ""},
		{"charged in part", 200, intentJSON("succeeded", `,"amount_received":4199`), checkout.OutcomeUnknown, "pi_1", ""},
		{"another key", 200, replaced("payment-1", "payment-2"), checkout.OutcomeUnknown, "", ""},
		{"another reference", 200, replaced("order-1", "order-2"), checkout.OutcomeUnknown, "", ""},
		{"another amount", 200, replaced(`"amount":4200`, `"amount":4201`), checkout.OutcomeUnknown, "", ""},
		{"another currency", 200, replaced("usd", "eur"), checkout.OutcomeUnknown, "", ""},
		{"no ID", 200, replaced("pi_1", ""), checkout.OutcomeUnknown, "", ""},
		{"no object", 200, `{}`, checkout.OutcomeUnknown, "", ""},
		{"no JSON", 200, `<html>`, checkout.OutcomeUnknown, "", ""},
		{"canceled", 200, intentJSON("canceled", ""), checkout.OutcomeDeclined, "pi_1", "canceled"},
		{"declined", 200, intentJSON("requires_payment_method", refusal), checkout.OutcomeDeclined, "pi_1", "lost_card"},
		{"not confirmed yet", 200, intentJSON("requires_payment_method", ""), checkout.OutcomeUnknown, "pi_1", ""},
		{"processing", 200, intentJSON("processing", refusal), checkout.OutcomeUnknown, "pi_1", ""},
		{"needs an action", 200, intentJSON("requires_action", refusal), checkout.OutcomeUnknown, "pi_1", ""},
		{"needs a confirmation", 200, intentJSON("requires_confirmation", refusal), checkout.OutcomeUnknown, "pi_1", ""},
		{"needs a capture", 200, intentJSON("requires_capture", received), checkout.OutcomeUnknown, "pi_1", ""},
		{"a status that is new", 200, intentJSON("requires_more", received), checkout.OutcomeUnknown, "pi_1", ""},

		{"402 with our intent", 402, inError(card, "card_declined", "", intentJSON("requires_payment_method", refusal)), checkout.OutcomeDeclined, "pi_1", "lost_card"},
		{"402 with the reason beside it", 402, inError(card, "expired_card", "", intentJSON("requires_payment_method", "")), checkout.OutcomeDeclined, "pi_1", "expired_card"},
		{"402, and it works on", 402, inError(card, "card_declined", "", intentJSON("processing", "")), checkout.OutcomeUnknown, "pi_1", ""},
		{"402 of another request", 402, inError(card, "card_declined", "", strings.Replace(intentJSON("requires_payment_method", refusal), "payment-1", "payment-2", 1)),
			checkout.OutcomeUnknown, "", ""},
		{"402 without an intent", 402, inError(card, "card_declined", "", ""), checkout.OutcomeAbsent, "", "card_declined"},
		{"402 without a reason", 402, inError(card, "", "", ""), checkout.OutcomeAbsent, "", "card_declined"},

		{"400 for the payment method", 400, inError(invalid, "resource_missing", "payment_method", ""), checkout.OutcomeAbsent, "", "invalid_token"},
		{"400 for the amount", 400, inError(invalid, "amount_too_small", "amount", ""), checkout.OutcomeAbsent, "", "amount_too_small"},
		{"400 for a currency", 400, inError(invalid, "", "currency", ""), checkout.OutcomeAbsent, "", "amount_not_supported"},
		{"400 for digits of the amount", 400, inError(invalid, "parameter_invalid_integer", "amount", ""), checkout.OutcomeAbsent, "", "parameter_invalid_integer"},
		{"400 for a fraction", 400, inError(invalid, "invalid_charge_amount_no_decimal_compatible", "", ""), checkout.OutcomeAbsent, "", "invalid_charge_amount_no_decimal_compatible"},
		{"400 after it was created", 400, inError(invalid, "payment_method_unactivated", "payment_method", intentJSON("requires_payment_method", "")), checkout.OutcomeUnknown, "pi_1", ""},
		{"400 for a parameter of ours", 400, inError(invalid, "parameter_unknown", "metadata", ""), checkout.OutcomeUnknown, "", ""},
		{"400 for a payment method and no code", 400, inError(invalid, "", "payment_method", ""), checkout.OutcomeUnknown, "", ""},
		{"400 for the key", 400, inError("idempotency_error", "", "", ""), checkout.OutcomeUnknown, "", ""},
		{"401", 401, inError(invalid, "api_key_expired", "", ""), checkout.OutcomeUnknown, "", ""},
		{"403", 403, inError(invalid, "", "", ""), checkout.OutcomeUnknown, "", ""},
		{"404", 404, inError(invalid, "resource_missing", "payment_method", ""), checkout.OutcomeUnknown, "", ""},
		{"409", 409, inError("idempotency_error", "idempotency_key_in_use", "", ""), checkout.OutcomeUnknown, "", ""},
		{"429", 429, inError(invalid, "rate_limit", "", ""), checkout.OutcomeUnknown, "", ""},
		{"429 while it works", 429, inError(invalid, "lock_timeout", "", intentJSON("requires_payment_method", "")), checkout.OutcomeUnknown, "pi_1", ""},
		{"500, and nothing is found", 500, inError("api_error", "", "", ""), checkout.OutcomeUnknown, "", ""},
		{"503 of a proxy", 503, `<html>`, checkout.OutcomeUnknown, "", ""},
		{"a card error that is no 402", 400, inError(card, "card_declined", "", ""), checkout.OutcomeUnknown, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := answering(t, c.status, c.body).Charge(t.Context(), chargeWith("pm_visa"))
			require.Equal(t, []string{string(c.outcome), c.id, c.code}, []string{string(got.Outcome), got.ProviderID, got.DeclineCode}, got.Cause)
			if c.outcome == checkout.OutcomeUnknown {
				requireUnknown(t, got)
			}
		})
	}
}

// TestRefund_ReadsAnswers is the same for refunds.
func TestRefund_ReadsAnswers(t *testing.T) {
	t.Parallel()
	const invalid = "invalid_request_error"
	whole := refundJSON("succeeded")
	replaced := func(before, after string) string {
		changed := strings.Replace(whole, before, after, 1)
		require.NotEqual(t, whole, changed)
		return changed
	}
	for _, c := range []struct {
		name    string
		status  int
		body    string
		outcome checkout.Outcome
		id      string
		code    string
	}{
		{"refunded", 200, whole, checkout.OutcomeApproved, "re_1", ""},
		{"another key", 200, replaced(`"refund-1"`, `"refund-2"`), checkout.OutcomeUnknown, "", ""},
		{"another reference", 200, replaced(`"oncepay_reference":"refund-1"`, `"oncepay_reference":"refund-2"`), checkout.OutcomeUnknown, "", ""},
		{"another amount", 200, replaced("1200", "1201"), checkout.OutcomeUnknown, "", ""},
		{"another currency", 200, replaced("usd", "eur"), checkout.OutcomeUnknown, "", ""},
		{"another charge", 200, replaced("pi_1", "pi_2"), checkout.OutcomeUnknown, "", ""},
		{"no charge", 200, replaced(`"payment_intent":"pi_1",`, ""), checkout.OutcomeUnknown, "", ""},
		{"no ID", 200, replaced("re_1", ""), checkout.OutcomeUnknown, "", ""},
		{"waits for the bank", 200, refundJSON("pending"), checkout.OutcomeUnknown, "re_1", ""},
		{"needs an action", 200, refundJSON("requires_action"), checkout.OutcomeUnknown, "re_1", ""},
		{"failed", 200, refundJSON("failed"), checkout.OutcomeDeclined, "re_1", "failed"},
		{"canceled", 200, refundJSON("canceled"), checkout.OutcomeDeclined, "re_1", "canceled"},

		{"already refunded", 400, inError(invalid, "charge_already_refunded", "", ""), checkout.OutcomeAbsent, "", "charge_already_refunded"},
		{"disputed", 400, inError(invalid, "charge_disputed", "", ""), checkout.OutcomeAbsent, "", "charge_disputed"},
		{"too much", 400, inError(invalid, "", "amount", ""), checkout.OutcomeAbsent, "", "refund_exceeds_charge"},
		{"no balance to refund from", 400, inError(invalid, "insufficient_funds", "", ""), checkout.OutcomeUnknown, "", ""},
		{"401", 401, inError(invalid, "", "", ""), checkout.OutcomeUnknown, "", ""},
		{"403", 403, inError(invalid, "charge_already_refunded", "", ""), checkout.OutcomeUnknown, "", ""},
		{"404", 404, inError(invalid, "resource_missing", "payment_intent", ""), checkout.OutcomeUnknown, "", ""},
		{"409", 409, inError("idempotency_error", "idempotency_key_in_use", "", ""), checkout.OutcomeUnknown, "", ""},
		{"429", 429, inError(invalid, "lock_timeout", "amount", ""), checkout.OutcomeUnknown, "", ""},
		{"500, and nothing is found", 500, inError("api_error", "", "amount", ""), checkout.OutcomeUnknown, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := answering(t, c.status, c.body).Refund(t.Context(), checkout.RefundRequest{IdempotencyKey: "refund-1", ChargeID: "pi_1",
				Reference: "refund-1", Amount: checkout.Money{Amount: 1200, Currency: "USD"}})
			require.Equal(t, []string{string(c.outcome), c.id, c.code}, []string{string(got.Outcome), got.ProviderID, got.DeclineCode}, got.Cause)
			if c.outcome == checkout.OutcomeUnknown {
				requireUnknown(t, got)
			}
		})
	}
}

// TestFind_OfMoreThanItReadsIsUnknown: what was not read may be ours.
func TestFind_OfMoreThanItReadsIsUnknown(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	gateway := gatewayTo(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		page := asked.Add(1)
		entries := make([]string, pageSize)
		for i := range entries {
			entries[i] = fmt.Sprintf(`{"id":"pi_%d_%d","object":"payment_intent","metadata":{}}`, page, i)
		}
		_, _ = fmt.Fprintf(w, `{"object":"list","has_more":true,"url":"/v1/payment_intents","data":[%s]}`, strings.Join(entries, ","))
	}))
	got := gateway.FindCharge(t.Context(), chargeWith("pm_visa"))
	requireUnknown(t, got)
	require.ErrorContains(t, got.Cause, "more than 5000 entries")
	require.LessOrEqual(t, asked.Load(), int64(maxListed/pageSize+1))
}

// TestFind_LooksAtOurKeyAlone: a list has the payments of everybody, and pages with other objects
// under their keys.
func TestFind_LooksAtOurKeyAlone(t *testing.T) {
	t.Parallel()
	others := strings.ReplaceAll(intentJSON("succeeded", `,"amount_received":4200`), "payment-1", "payment-2") + "," +
		`{"id":"pi_3","object":"payment_intent","status":"succeeded","amount":4200,"amount_received":4200,"currency":"usd","metadata":{}}`
	for name, c := range map[string]struct {
		list    string
		outcome checkout.Outcome
	}{
		"nothing":            {``, checkout.OutcomeAbsent},
		"others":             {others, checkout.OutcomeAbsent},
		"ours behind others": {others + "," + intentJSON("succeeded", `,"amount_received":4200`), checkout.OutcomeApproved},
		"ours at work":       {others + "," + intentJSON("processing", ""), checkout.OutcomeUnknown},
	} {
		gateway := gatewayTo(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprintf(w, `{"object":"list","has_more":false,"data":[%s]}`, c.list)
		}))
		request := chargeWith("pm_visa")
		request.Begun = time.Now()
		require.Equal(t, c.outcome, gateway.FindCharge(t.Context(), request).Outcome, name)
	}
}
