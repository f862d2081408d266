package checkout

import (
	"context"
	"time"
)

// How old a payment or refund is when an attempt at it is taken, by the store's clock, decides what
// the attempt does at the provider.
const (
	// maxBlindAge is how old it may be to be sent again without a look-up: every provider remembers
	// idempotency keys for longer, and nothing that was sent is under way for longer.
	maxBlindAge = time.Hour
	// maxSendAge is how old it may be to be sent at all. Providers forget idempotency keys after
	// 24 h (Stripe API reference, "Idempotent requests").
	maxSendAge = 23 * time.Hour
	// minAbsentAge is how old it is when nothing that was sent can arrive any more, so that what
	// the provider does not have was never done.
	minAbsentAge = 24 * time.Hour
)

// sendCharge asks the provider for the payment, or looks it up. It never returns that the payment
// is absent.
func sendCharge(ctx context.Context, g Gateway, p Payment) GatewayResult {
	return askProvider(p.Attempt, p.UpdatedAt.Sub(p.CreatedAt),
		func() GatewayResult { return g.FindCharge(ctx, p.charge()) },
		func() GatewayResult { return g.Charge(ctx, p.charge()) })
}

// sendRefund is sendCharge for a refund.
func sendRefund(ctx context.Context, g Gateway, r Refund) GatewayResult {
	return askProvider(r.Attempt, r.UpdatedAt.Sub(r.CreatedAt),
		func() GatewayResult { return g.FindRefund(ctx, r.instruction()) },
		func() GatewayResult { return g.Refund(ctx, r.instruction()) })
}

// askProvider makes one attempt. A rejection settles the first attempt, because nothing was sent
// before it. After a later attempt it may be that an earlier one has moved the money, which the
// provider's books show, or still will.
func askProvider(attempt int32, age time.Duration, find, send func() GatewayResult) GatewayResult {
	if age > maxBlindAge {
		found := find()
		switch {
		case age > minAbsentAge:
			return found.declinedIfAbsent()
		case age > maxSendAge || found.Outcome != OutcomeAbsent:
			return found.unknownIfAbsent()
		}
	}
	result := send()
	switch {
	case attempt == 1:
		return result.declinedIfAbsent()
	case result.Outcome == OutcomeAbsent:
		return find().unknownIfAbsent()
	}
	return result
}
