package checkout

import "context"

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

// HandleProviderEvent settles what a provider event is about. The answers that are kept under the
// clients' keys are encoded as a handler would have encoded them.
func (s *Service) HandleProviderEvent(ctx context.Context, e ProviderEvent, encode Encode) (Verdict, error) {
	if e.isUsable() {
		if id, ok := s.payments.subject(e); ok {
			return s.payments.store.SettleByEvent(ctx, id, e, encode)
		}
		if id, ok := s.refunds.subject(e); ok {
			return s.refunds.store.SettleByEvent(ctx, id, e, encode)
		}
	}
	return s.store.RecordProviderEvent(ctx, e)
}

// isUsable reports whether the event says an outcome. An approval without the provider's ID would
// settle a payment that cannot be refunded.
func (e ProviderEvent) isUsable() bool {
	return e.Result.Outcome == OutcomeDeclined || (e.Result.Outcome == OutcomeApproved && e.Result.ProviderID != "")
}
