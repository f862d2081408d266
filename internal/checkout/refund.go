package checkout

import (
	"time"

	"github.com/google/uuid"
)

// Refund refunds a payment or a part of it, to where it was paid from.
type Refund struct {
	Operation
	PaymentID uuid.UUID
	OrderID   uuid.UUID
	ChargeID  string // the provider's charge that is refunded; empty for the wallet
}

// NewRefund asks for a refund.
type NewRefund struct {
	PaymentID uuid.UUID
	Amount    *Money // nil: all that is left
}

// PaidOrder is a payment with its order.
type PaidOrder struct {
	Order    Order
	Payment  Payment
	Refunded Money // of the payment, without refunds that are processing
}

// RefundToWallet decides a refund of a wallet payment. The order, the payment and the customer's
// wallet are locked. The refund succeeds at once.
func RefundToWallet(paid PaidOrder, wallet Wallet, wanted NewRefund, id uuid.UUID, now time.Time) (Refund, Changes, *Error) {
	refund, refused := newRefund(paid.Payment, wanted, StatusSucceeded, id, now)
	if refused != nil {
		return Refund{}, Changes{}, refused
	}
	if wallet, refused = wallet.credit(refund.Amount, now); refused != nil {
		return Refund{}, Changes{}, refused
	}
	changes := refund.succeeded(paid)
	changes.CreatedRefund, changes.ChangedWallet = &refund, &wallet
	changes.RefundedPayment = paid.Payment.refundedBy(+refund.Amount.Amount, now)
	return refund, changes, nil
}

// BeginCardRefund decides whether the provider may be asked to refund a locked payment. The amount
// is reserved, so that refunds that are processing cannot exceed the payment together.
func BeginCardRefund(payment Payment, wanted NewRefund, id uuid.UUID, now time.Time) (Refund, Changes, *Error) {
	refund, refused := newRefund(payment, wanted, StatusProcessing, id, now)
	if refused != nil {
		return Refund{}, Changes{}, refused
	}
	return refund, Changes{CreatedRefund: &refund, RefundedPayment: payment.refundedBy(+refund.Amount.Amount, now)}, nil
}

// SettleCardRefund decides what follows from the provider's answer, which must not be unknown, to a
// refund that is processing. A declined one releases its reserved amount.
func SettleCardRefund(paid PaidOrder, refund Refund, result GatewayResult, now time.Time) (Refund, Changes, *Error) {
	refund.Operation = refund.settled(result, now)
	if refund.Status == StatusDeclined {
		return Refund{}, Changes{SettledRefund: &refund, RefundedPayment: paid.Payment.refundedBy(-refund.Amount.Amount, now),
			Events: []Event{RefundEvent(refund)}}, RefundDeclined(refund.DeclineCode)
	}
	changes := refund.succeeded(paid)
	changes.SettledRefund = &refund
	return refund, changes, nil
}

// newRefund is a refund of a payment that is locked, because what is refunded of it, settled or
// processing, must never exceed it.
func newRefund(payment Payment, wanted NewRefund, status Status, id uuid.UUID, now time.Time) (Refund, *Error) {
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
	return Refund{Operation: Operation{ID: id, Amount: amount, Status: status, CreatedAt: now, UpdatedAt: now},
		PaymentID: payment.ID, OrderID: payment.OrderID, ChargeID: payment.ProviderID}, nil
}

// succeeded is what follows from a succeeded refund.
func (r Refund) succeeded(paid PaidOrder) Changes {
	status := OrderPartiallyRefunded
	if paid.Refunded.Amount+r.Amount.Amount >= paid.Order.Total.Amount {
		status = OrderRefunded
	}
	return Changes{ChangedOrder: paid.Order.as(status, r.UpdatedAt), Ledger: r.ledger(paid.Payment), Events: []Event{RefundEvent(r)}}
}

// refundedBy is the payment with so much more of it refunded, or being refunded.
func (p Payment) refundedBy(amount int64, now time.Time) *Payment {
	p.Refunded.Amount, p.UpdatedAt = p.Refunded.Amount+amount, now
	return &p
}

// instruction is the provider's side of the refund; see Payment.charge.
func (r Refund) instruction() RefundRequest {
	return RefundRequest{IdempotencyKey: refundKeyPrefix + r.ID.String(), ChargeID: r.ChargeID, Amount: r.Amount,
		Reference: r.ID.String(), ProviderID: r.ProviderID}
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
