package checkout

import (
	"context"
	"time"
)

// maxSendAge is how old a payment or refund may be when it is sent to the provider. Providers
// forget idempotency keys after 24 h (Stripe API reference, "Idempotent requests"); after that the
// same request would move the money again.
const maxSendAge = 23 * time.Hour

// Outcome is what a provider did with a request. There are three, not two.
type Outcome string

// The outcomes at a provider.
const (
	OutcomeApproved Outcome = "approved"
	OutcomeDeclined Outcome = "declined"
	OutcomeUnknown  Outcome = "unknown" // it may or may not have moved the money
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
	DeclineCode string // when declined
	Cause       error  // why it is unknown; for the log
}

// Gateway moves money at a payment provider. An implementation MUST report an outcome as unknown
// unless the provider said clearly what it did; it MUST send a request at most once per call; it is
// safe for concurrent use.
type Gateway interface {
	Charge(ctx context.Context, r ChargeRequest) GatewayResult
	Refund(ctx context.Context, r RefundRequest) GatewayResult

	// FindCharge and FindRefund look up what became of a request and move nothing. A request that
	// the provider does not have is declined: it did not arrive, and is never sent again.
	FindCharge(ctx context.Context, r ChargeRequest) GatewayResult
	FindRefund(ctx context.Context, r RefundRequest) GatewayResult
}

// sendCharge asks the provider for the payment, or only looks it up when it is too old to be sent.
// Its age is that of the attempt, by the store's clock.
func sendCharge(ctx context.Context, g Gateway, p Payment) GatewayResult {
	if p.UpdatedAt.Sub(p.CreatedAt) > maxSendAge {
		return g.FindCharge(ctx, p.charge())
	}
	return g.Charge(ctx, p.charge())
}

// sendRefund is sendCharge for a refund.
func sendRefund(ctx context.Context, g Gateway, r Refund) GatewayResult {
	if r.UpdatedAt.Sub(r.CreatedAt) > maxSendAge {
		return g.FindRefund(ctx, r.instruction())
	}
	return g.Refund(ctx, r.instruction())
}
