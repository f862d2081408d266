package checkout

import (
	"context"
	"errors"
	"time"
)

// maxSendAge is how old a payment or refund may be when it is sent to the provider. Providers
// forget idempotency keys after 24 h (Stripe API reference, "Idempotent requests"); after that the
// same request would move the money again.
const maxSendAge = 23 * time.Hour

// unknownAge is the result while the age of what was begun is not known. What was begun was timed
// well, or else its key could not have been claimed.
var unknownAge = GatewayResult{Outcome: OutcomeUnknown, Cause: errors.New("the clocks of the store and of this process differ by half an hour")}

// isFarOff reports whether the store timed an attempt otherwise than this process does: one of the
// two clocks is wrong.
func isFarOff(attempted time.Time) bool { return time.Since(attempted).Abs() > MaxAttemptAge }

// sendCharge asks the provider for the payment, or only looks it up when it is too old to be sent.
// Its age is that of the attempt, by the store's clock. It never returns that the payment is
// absent: a rejection settles the first attempt, because nothing was sent before it. After a later
// attempt it may be that an earlier one has charged, which the provider's books show, or still
// will.
func sendCharge(ctx context.Context, g Gateway, p Payment) GatewayResult {
	switch {
	case isFarOff(p.UpdatedAt):
		return unknownAge
	case p.UpdatedAt.Sub(p.CreatedAt) > maxSendAge:
		return g.FindCharge(ctx, p.charge()).declinedIfAbsent()
	}
	result := g.Charge(ctx, p.charge())
	switch {
	case p.Attempt == 1:
		return result.declinedIfAbsent()
	case result.Outcome == OutcomeAbsent:
		return g.FindCharge(ctx, p.charge()).unknownIfAbsent()
	}
	return result
}

// sendRefund is sendCharge for a refund, which providers do not reject without a trace.
func sendRefund(ctx context.Context, g Gateway, r Refund) GatewayResult {
	switch {
	case isFarOff(r.UpdatedAt):
		return unknownAge
	case r.UpdatedAt.Sub(r.CreatedAt) > maxSendAge:
		return g.FindRefund(ctx, r.instruction()).declinedIfAbsent()
	}
	return g.Refund(ctx, r.instruction()).unknownIfAbsent()
}
