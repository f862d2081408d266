package stripe

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/stripe/stripe-go/v85"

	"github.com/oncepay/oncepay/internal/checkout"
)

// Decline codes of a request that Stripe has nothing of.
const (
	invalidToken = "invalid_token"
	notCharged   = "not_charged"
	notRefunded  = "not_refunded"
	notSupported = "amount_not_supported"
)

// rejectedCharges are the errors of a request that Stripe refuses before it creates a
// PaymentIntent, and whose cause is what the client sent. Other rejections are a fault of ours or
// of our settings: their outcome is unknown until a person has mended it.
var rejectedCharges = []stripe.ErrorCode{
	stripe.ErrorCodeResourceMissing, stripe.ErrorCodeTokenAlreadyUsed, stripe.ErrorCodeTokenInUse,
	stripe.ErrorCodeAmountTooSmall, stripe.ErrorCodeAmountTooLarge, stripe.ErrorCodeInvalidChargeAmount, noFractions,
	stripe.ErrorCodePaymentMethodUnexpectedState, stripe.ErrorCodePaymentMethodUnactivated,
}

// noFractions is the error of an ISK or UGX amount that is no multiple of 100 (Stripe support,
// "Deprecation of fractional ISK charges and refunds").
const noFractions stripe.ErrorCode = "invalid_charge_amount_no_decimal_compatible"

// rejectedRefunds are the errors with which Stripe finally refuses a refund.
var rejectedRefunds = []stripe.ErrorCode{
	stripe.ErrorCodeChargeAlreadyRefunded, stripe.ErrorCodeChargeDisputed, stripe.ErrorCodeRefundDisputedPayment,
	stripe.ErrorCodeChargeNotRefundable, noFractions,
}

// ofIntent returns what a PaymentIntent says about the request. One that was neither confirmed nor
// canceled says nothing: see docs/stripe.md for the person who finds one.
func ofIntent(intent *stripe.PaymentIntent, r checkout.ChargeRequest) checkout.GatewayResult {
	result := unknown("charge", fmt.Errorf("payment intent %q has status %q, amount %d %s of which %d received, and key %q",
		intent.ID, intent.Status, intent.Amount, intent.Currency, intent.AmountReceived, intent.Metadata[KeyMember]))
	if intent.ID == "" || intent.Metadata[KeyMember] != r.IdempotencyKey || intent.Metadata[ReferenceMember] != r.Reference ||
		!isMoney(r.Amount, intent.Amount, intent.Currency) {
		return result
	}
	result.ProviderID = intent.ID
	switch intent.Status {
	case stripe.PaymentIntentStatusSucceeded:
		if intent.AmountReceived == intent.Amount {
			return checkout.GatewayResult{Outcome: checkout.OutcomeApproved, ProviderID: intent.ID}
		}
	case stripe.PaymentIntentStatusCanceled:
		return declined(intent.ID, "canceled")
	case stripe.PaymentIntentStatusRequiresPaymentMethod:
		if intent.LastPaymentError != nil {
			return declined(intent.ID, declineCode(intent.LastPaymentError))
		}
	}
	return result
}

// ofRefund returns what a refund says about the request. A refund that waits for the bank is
// unknown until its event or a look-up.
func ofRefund(refund *stripe.Refund, r checkout.RefundRequest) checkout.GatewayResult {
	result := unknown("refund", fmt.Errorf("refund %q has status %q, amount %d %s, and key %q",
		refund.ID, refund.Status, refund.Amount, refund.Currency, refund.Metadata[KeyMember]))
	if refund.ID == "" || refund.Metadata[KeyMember] != r.IdempotencyKey || refund.Metadata[ReferenceMember] != r.Reference ||
		!isMoney(r.Amount, refund.Amount, refund.Currency) || refund.PaymentIntent == nil || refund.PaymentIntent.ID != r.ChargeID {
		return result
	}
	result.ProviderID = refund.ID
	switch refund.Status {
	case stripe.RefundStatusSucceeded:
		return checkout.GatewayResult{Outcome: checkout.OutcomeApproved, ProviderID: refund.ID}
	case stripe.RefundStatusFailed, stripe.RefundStatusCanceled:
		return declined(refund.ID, cmp.Or(string(refund.FailureReason), string(refund.Status)))
	}
	return result
}

// chargeRefused returns what a 4xx says about a charge.
func chargeRefused(e *stripe.Error, r checkout.ChargeRequest) checkout.GatewayResult {
	switch {
	case e.PaymentIntent != nil:
		return ofRefusedIntent(e, r)
	case e.HTTPStatusCode == http.StatusPaymentRequired:
		// The card failed before there was a PaymentIntent.
		return checkout.GatewayResult{Outcome: checkout.OutcomeAbsent, DeclineCode: declineCode(e)}
	case e.HTTPStatusCode == http.StatusBadRequest && (slices.Contains(rejectedCharges, e.Code) || e.Param == "amount" || e.Param == "currency"):
		code := string(e.Code)
		if strings.HasPrefix(e.Param, "payment_method") {
			code = invalidToken
		}
		return checkout.GatewayResult{Outcome: checkout.OutcomeAbsent, DeclineCode: cmp.Or(code, notSupported)}
	}
	return unknown("charge", e)
}

// ofRefusedIntent returns what the PaymentIntent in an error says. Where it has no reason, that of
// a card's error is its own; any other error may be about a request that found it at work.
func ofRefusedIntent(e *stripe.Error, r checkout.ChargeRequest) checkout.GatewayResult {
	intent := *e.PaymentIntent
	if intent.LastPaymentError == nil && e.HTTPStatusCode == http.StatusPaymentRequired {
		intent.LastPaymentError = e
	}
	result := ofIntent(&intent, r)
	if result.Cause != nil {
		result.Cause = fmt.Errorf("%w: %w", result.Cause, describe(e))
	}
	return result
}

// refundRefused returns what a 4xx says about a refund.
func refundRefused(e *stripe.Error) checkout.GatewayResult {
	if e.HTTPStatusCode == http.StatusBadRequest && (slices.Contains(rejectedRefunds, e.Code) || e.Param == "amount") {
		// Absent and not declined: an earlier request with the key may have been the one that
		// refunded, and Stripe checks the charge before it looks at a key that it has forgotten.
		return checkout.GatewayResult{Outcome: checkout.OutcomeAbsent, DeclineCode: cmp.Or(string(e.Code), "refund_exceeds_charge")}
	}
	return unknown("refund", e)
}

func declineCode(e *stripe.Error) string {
	return cmp.Or(string(e.DeclineCode), string(e.Code), "card_declined")
}

// describe returns the error without its text, which may repeat what the client sent.
func describe(e *stripe.Error) error {
	return fmt.Errorf("status %d, type %q, code %q, parameter %q, request %q", e.HTTPStatusCode, e.Type, e.Code, e.Param, e.RequestID)
}

func isMoney(want checkout.Money, amount int64, currency stripe.Currency) bool {
	units, exact := unitsOf(want)
	return exact && amount == units && strings.EqualFold(string(currency), want.Currency)
}

func declined(id, code string) checkout.GatewayResult {
	return checkout.GatewayResult{Outcome: checkout.OutcomeDeclined, ProviderID: id, DeclineCode: code}
}

func unknown(asked string, cause error) checkout.GatewayResult {
	if e := (*stripe.Error)(nil); errors.As(cause, &e) {
		cause = describe(e)
	}
	return checkout.GatewayResult{Outcome: checkout.OutcomeUnknown, Cause: fmt.Errorf("%s at Stripe: %w", asked, cause)}
}
