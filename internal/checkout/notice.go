package checkout

import (
	"context"
	"strings"

	"github.com/google/uuid"
)

// The objects of a [Notice].
const (
	ObjectCharge = "charge"
	ObjectRefund = "refund"
)

// Notice is what the provider tells by itself of a charge or a refund. Notices
// come late, more than once and in any order.
type Notice struct {
	EventID string // the same each time it comes
	Type    string // as the provider calls it
	Object  string // ObjectCharge or ObjectRefund; others are not ours
	Subject string // the provider's idempotency key of the charge or refund
	Amount  Money
	Result  GatewayResult // unknown: the notice tells of something else
}

// Verdict is what became of a notice.
type Verdict string

// The verdicts. Only the first one changed anything.
const (
	VerdictSettled     Verdict = "settled"     // a payment or refund was processing, and is no more
	VerdictConfirmed   Verdict = "confirmed"   // it was settled just so before
	VerdictConflicting Verdict = "conflicting" // it was settled otherwise before, or is of another amount
	VerdictUnknown     Verdict = "unknown"     // no payment or refund of ours
	VerdictDuplicate   Verdict = "duplicate"   // the event came before
)

// NoticeStore is what a [Service] needs of a store to heed notices. Each method
// MUST record the event by its ID in the transaction of what follows from it. An
// event that is recorded already MUST lead to VerdictDuplicate and to no change.
type NoticeStore interface {
	// SettlePaymentByNotice settles a card payment that is processing, of whichever
	// account and at whichever attempt, like SettleCardPayment of [Store]. The
	// verdict is that of [Payment.Heed] on the locked payment, or VerdictUnknown.
	SettlePaymentByNotice(ctx context.Context, payment uuid.UUID, n Notice, render Render[Payment]) (Verdict, error)
	// SettleRefundByNotice does the same for a refund.
	SettleRefundByNotice(ctx context.Context, refund uuid.UUID, n Notice, render Render[Refund]) (Verdict, error)
	// RecordNotice records an event that follows nothing from: VerdictUnknown.
	RecordNotice(ctx context.Context, n Notice) (Verdict, error)
}

// TakeNotice does what follows from a notice. The replies that are kept under
// the clients' keys are rendered like those that a handler would have given.
func (s *Service) TakeNotice(ctx context.Context, n Notice, payment Render[Payment], refund Render[Refund]) (Verdict, error) {
	if n.Result.Outcome != OutcomeUnknown {
		if id, ok := subjectID(n, ObjectCharge, chargeKeyPrefix); ok {
			return s.store.SettlePaymentByNotice(ctx, id, n, payment)
		}
		if id, ok := subjectID(n, ObjectRefund, refundKeyPrefix); ok {
			return s.store.SettleRefundByNotice(ctx, id, n, refund)
		}
	}
	return s.store.RecordNotice(ctx, n)
}

// subjectID reads our ID out of the provider's key; see Payment.charge.
func subjectID(n Notice, object, prefix string) (uuid.UUID, bool) {
	text, ok := strings.CutPrefix(n.Subject, prefix)
	id, err := uuid.Parse(text)
	return id, ok && err == nil && n.Object == object
}

// Heed says what a notice means for the payment. It contradicts a payment that
// was settled otherwise, and that was charged twice.
func (p Payment) Heed(n Notice) Verdict { return judge(n, p.Amount, p.Status, p.ProviderID) }

// Heed says what a notice means for the refund.
func (r Refund) Heed(n Notice) Verdict { return judge(n, r.Amount, r.Status, r.ProviderID) }

func judge(n Notice, amount Money, status Status, providerID string) Verdict {
	declined := n.Result.Outcome == OutcomeDeclined
	switch {
	case n.Amount != amount:
		return VerdictConflicting
	case status == StatusProcessing:
		return VerdictSettled
	case status == StatusDeclined && declined, status == StatusSucceeded && !declined && providerID == n.Result.ProviderID:
		return VerdictConfirmed
	}
	return VerdictConflicting
}
