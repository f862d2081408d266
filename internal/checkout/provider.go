package checkout

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
)

// maxSendAge is how old a payment or refund may be when it is sent to the provider. Providers
// forget idempotency keys after 24 h (Stripe API reference, "Idempotent requests"); after that the
// same request would move the money again.
const maxSendAge = 23 * time.Hour

// operation is a payment or a refund.
type operation interface{ Common() Operation }

// kind is one kind of operation at the provider: how it is asked for there and kept here. A request
// W leads to a T.
type kind[W any, T operation] struct {
	name        string // in logs and in codes of errors
	object      string // of provider events
	keyPrefix   string // of the provider's keys; our ID follows
	ask, lookUp func(context.Context, T) GatewayResult
	store       Operations[W, T]
}

func cardPayments(store Operations[NewPayment, Payment], g Gateway) kind[NewPayment, Payment] {
	return kind[NewPayment, Payment]{name: "payment", object: ObjectCharge, keyPrefix: chargeKeyPrefix, store: store,
		ask:    func(ctx context.Context, p Payment) GatewayResult { return g.Charge(ctx, p.charge()) },
		lookUp: func(ctx context.Context, p Payment) GatewayResult { return g.FindCharge(ctx, p.charge()) }}
}

func cardRefunds(store Operations[NewRefund, Refund], g Gateway) kind[NewRefund, Refund] {
	return kind[NewRefund, Refund]{name: "refund", object: ObjectRefund, keyPrefix: refundKeyPrefix, store: store,
		ask:    func(ctx context.Context, r Refund) GatewayResult { return g.Refund(ctx, r.instruction()) },
		lookUp: func(ctx context.Context, r Refund) GatewayResult { return g.FindRefund(ctx, r.instruction()) }}
}

// send asks the provider for an operation, or only looks it up when it is too old to be sent. It
// never returns that the operation is absent: a rejection settles the first attempt, because
// nothing was sent before it. After a later attempt it may be that an earlier one has moved the
// money, which the provider's books show, or still will.
func (k kind[W, T]) send(ctx context.Context, value T) GatewayResult {
	at := value.Common()
	if at.age() > maxSendAge {
		return k.lookUp(ctx, value).declinedIfAbsent()
	}
	result := k.ask(ctx, value)
	switch {
	case at.Attempt == 1:
		return result.declinedIfAbsent()
	case result.Outcome == OutcomeAbsent:
		return k.lookUp(ctx, value).unknownIfAbsent()
	}
	return result
}

// subject reads our ID from the provider's key that an event is about.
func (k kind[W, T]) subject(e ProviderEvent) (uuid.UUID, bool) {
	text, ok := strings.CutPrefix(e.Subject, k.keyPrefix)
	id, err := uuid.Parse(text)
	return id, ok && err == nil && e.Object == k.object
}
