package checkout

import (
	"time"

	"github.com/google/uuid"
)

// Refund refunds a payment or a part of it, to where it was paid from.
type Refund struct {
	ID          uuid.UUID
	PaymentID   uuid.UUID
	OrderID     uuid.UUID
	Amount      Money
	Status      Status
	DeclineCode string
	ProviderID  string // the provider's refund; empty for the wallet
	ChargeID    string // the provider's charge that is refunded; empty for the wallet
	Attempt     int32  // the fence: only the newest attempt may settle
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// NewRefund asks for a refund.
type NewRefund struct {
	PaymentID uuid.UUID
	Amount    *Money // nil: all that is left
}

// StartRefund decides a refund. The payment must be locked, because what is refunded of it, settled
// or processing, must never exceed it.
func StartRefund(id uuid.UUID, payment Payment, wanted NewRefund, now time.Time) (Refund, *Error) {
	switch payment.Status {
	case StatusSucceeded:
	case StatusProcessing:
		return Refund{}, paymentProcessing(payment.CreatedAt)
	default:
		return Refund{}, conflict("payment_not_succeeded", "The payment is %s; only a succeeded one can be refunded.", payment.Status)
	}
	left := Money{Amount: payment.Amount.Amount - payment.Refunded.Amount, Currency: payment.Amount.Currency}
	amount := left
	if wanted.Amount != nil {
		amount = *wanted.Amount
	}
	if amount.Currency != left.Currency {
		return Refund{}, unprocessable("currency_mismatch", "The payment was made in %s.", left.Currency)
	}
	if amount.Amount > left.Amount || left.Amount == 0 {
		return Refund{}, unprocessable("refund_exceeds_payment", "Only %d %s of the payment are left to refund.", left.Amount, left.Currency)
	}
	refund := Refund{ID: id, PaymentID: payment.ID, OrderID: payment.OrderID, Amount: amount,
		Status: StatusSucceeded, ChargeID: payment.ProviderID, Attempt: 1, CreatedAt: now, UpdatedAt: now}
	if payment.Method == MethodCard {
		refund.Status = StatusProcessing
	}
	return refund, nil
}

// Settle is the refund after the provider's answer, which must not be unknown.
func (r Refund) Settle(result GatewayResult, now time.Time) Refund {
	r.Status, r.ProviderID, r.UpdatedAt = StatusSucceeded, result.ProviderID, now
	if result.Outcome == OutcomeDeclined {
		r.Status, r.DeclineCode = StatusDeclined, result.DeclineCode
	}
	return r
}

// instruction is the provider's side of the refund; see Payment.charge.
func (r Refund) instruction() RefundRequest {
	return RefundRequest{IdempotencyKey: refundKeyPrefix + r.ID.String(), ChargeID: r.ChargeID, Amount: r.Amount,
		Reference: r.ID.String()}
}

// paymentProcessing is retryable: the payment settles by itself, in either direction.
func paymentProcessing(since time.Time) *Error {
	return &Error{Kind: KindConflict, Code: "payment_processing", Retryable: true, Since: since,
		Message: "The payment is still being processed; only a succeeded one can be refunded."}
}

// RefundDeclined is the final answer to a refund that the provider refused.
func RefundDeclined(code string) *Error {
	return &Error{Kind: KindDeclined, Code: "refund_declined",
		Message: "The provider declined the refund (" + code + "). Nothing was refunded."}
}
