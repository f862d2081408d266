package checkout

import (
	"context"
	"strings"

	"github.com/google/uuid"
)

// The objects of a [ProviderEvent].
const (
	ObjectCharge = "charge"
	ObjectRefund = "refund"
)

// ProviderEvent is a message that the payment provider sends about a charge or a refund. Provider
// events arrive late, more than once and in any order.
type ProviderEvent struct {
	ID      string // the same each time the event is sent
	Type    string // the provider's name for it
	Object  string // ObjectCharge or ObjectRefund; others are not ours
	Subject string // the provider's idempotency key of the charge or refund
	Amount  Money
	Result  GatewayResult // unknown: the event is about something else than the outcome
}

// Verdict is what a provider event led to.
type Verdict string

// The verdicts. Only VerdictSettled changed anything.
const (
	VerdictSettled     Verdict = "settled"     // the payment or refund was processing, and is settled now
	VerdictConfirmed   Verdict = "confirmed"   // it was settled before with the same outcome
	VerdictConflicting Verdict = "conflicting" // it was settled before with another outcome, or the amount differs
	VerdictUnknown     Verdict = "unknown"     // there is no such payment or refund
	VerdictDuplicate   Verdict = "duplicate"   // the event was received before
)

// ProviderEventStore is what a [Service] needs of a store to handle provider events. Each method
// MUST record the event by its ID in the transaction of what follows from it. An event that is
// recorded already MUST lead to VerdictDuplicate and to no change.
type ProviderEventStore interface {
	// SettlePaymentByProviderEvent settles a card payment that is processing, of any account and at
	// any attempt, like SettleCardPayment of [Store]. The verdict is that of [Operation.Match] on the
	// locked payment, or VerdictUnknown.
	SettlePaymentByProviderEvent(ctx context.Context, payment uuid.UUID, e ProviderEvent, render Render[Payment]) (Verdict, error)
	// SettleRefundByProviderEvent does the same for a refund.
	SettleRefundByProviderEvent(ctx context.Context, refund uuid.UUID, e ProviderEvent, render Render[Refund]) (Verdict, error)
	// RecordProviderEvent records an event that leads to nothing: VerdictUnknown.
	RecordProviderEvent(ctx context.Context, e ProviderEvent) (Verdict, error)
}

// HandleProviderEvent settles what a provider event is about. The answers that are kept under the
// clients' keys are rendered as a handler would have rendered them.
func (s *Service) HandleProviderEvent(ctx context.Context, e ProviderEvent, payment Render[Payment], refund Render[Refund]) (Verdict, error) {
	if e.isUsable() {
		if id, ok := subjectID(e, ObjectCharge, chargeKeyPrefix); ok {
			return s.store.SettlePaymentByProviderEvent(ctx, id, e, payment)
		}
		if id, ok := subjectID(e, ObjectRefund, refundKeyPrefix); ok {
			return s.store.SettleRefundByProviderEvent(ctx, id, e, refund)
		}
	}
	return s.store.RecordProviderEvent(ctx, e)
}

// isUsable reports whether the event says an outcome. An approval without the provider's ID would
// settle a payment that cannot be refunded.
func (e ProviderEvent) isUsable() bool {
	return e.Result.Outcome == OutcomeDeclined || (e.Result.Outcome == OutcomeApproved && e.Result.ProviderID != "")
}

// subjectID reads our ID from the provider's key; see Payment.charge.
func subjectID(e ProviderEvent, object, prefix string) (uuid.UUID, bool) {
	text, ok := strings.CutPrefix(e.Subject, prefix)
	id, err := uuid.Parse(text)
	return id, ok && err == nil && e.Object == object
}
