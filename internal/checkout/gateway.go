package checkout

import (
	"context"
	"fmt"
	"time"
)

// maxSendAge is how old a payment or refund may be when it is sent to the provider. Providers
// forget idempotency keys after 24 h (Stripe API reference, "Idempotent requests"); after that the
// same request would move the money again.
const maxSendAge = 23 * time.Hour

// Outcome is what a provider did with a request.
type Outcome string

// The outcomes at a provider.
const (
	OutcomeApproved Outcome = "approved"
	OutcomeDeclined Outcome = "declined"
	OutcomeUnknown  Outcome = "unknown" // it may or may not have moved the money
	// OutcomeAbsent says that the provider has nothing under the request's key: the request did
	// not arrive yet, or was rejected without a trace. An earlier one with the key may still be
	// under way, so this alone settles nothing.
	OutcomeAbsent Outcome = "absent"
)

// ChargeRequest asks a provider to take money.
type ChargeRequest struct {
	IdempotencyKey string // one key is charged once, however often it is sent
	Amount         Money
	Reference      string // our order, for the provider's audit
	Token          string
}

// RefundRequest asks a provider to refund a charge or a part of it.
type RefundRequest struct {
	IdempotencyKey string
	ChargeID       string
	Amount         Money
	Reference      string // our refund, for the provider's audit
}

// GatewayResult is a provider's answer.
type GatewayResult struct {
	Outcome     Outcome
	ProviderID  string // of the charge or refund, when approved
	DeclineCode string // when declined or absent
	Cause       error  // why it is unknown; for the log
}

// declinedIfAbsent is the result of the only request that can have reached the provider: an absent
// one is declined.
func (r GatewayResult) declinedIfAbsent() GatewayResult {
	if r.Outcome == OutcomeAbsent {
		r.Outcome = OutcomeDeclined
	}
	return r
}

// unknownIfAbsent is the result of a request of which an earlier copy may be under way.
func (r GatewayResult) unknownIfAbsent() GatewayResult {
	if r.Outcome != OutcomeAbsent {
		return r
	}
	return GatewayResult{Outcome: OutcomeUnknown,
		Cause: fmt.Errorf("the provider has nothing under the key (%s), and an earlier attempt may be under way", r.DeclineCode)}
}

// Gateway moves money at a payment provider. An implementation MUST report an outcome as unknown
// unless the provider said clearly what it did; it MUST send a request at most once per call; it is
// safe for concurrent use.
type Gateway interface {
	Charge(ctx context.Context, r ChargeRequest) GatewayResult
	Refund(ctx context.Context, r RefundRequest) GatewayResult

	// FindCharge and FindRefund look up what became of a request and move nothing.
	FindCharge(ctx context.Context, r ChargeRequest) GatewayResult
	FindRefund(ctx context.Context, r RefundRequest) GatewayResult
}

// sendCharge asks the provider for the payment, or only looks it up when it is too old to be sent.
// Its age is that of the attempt, by the store's clock. It never returns that the payment is
// absent: a rejection settles the first attempt, because nothing was sent before it. After a later
// attempt it may be that an earlier one has charged, which the provider's books show, or still
// will.
func sendCharge(ctx context.Context, g Gateway, p Payment) GatewayResult {
	if p.UpdatedAt.Sub(p.CreatedAt) > maxSendAge {
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
	if r.UpdatedAt.Sub(r.CreatedAt) > maxSendAge {
		return g.FindRefund(ctx, r.instruction()).declinedIfAbsent()
	}
	return g.Refund(ctx, r.instruction()).unknownIfAbsent()
}
