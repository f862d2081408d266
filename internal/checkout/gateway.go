package checkout

import "context"

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

// RefundRequest asks a provider to give money of a charge back.
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

// Gateway moves money at a payment provider. An implementation MUST report an
// outcome as unknown unless the provider said clearly what it did; it MUST send
// a request at most once per call; it is safe for concurrent use.
type Gateway interface {
	Charge(ctx context.Context, r ChargeRequest) GatewayResult
	Refund(ctx context.Context, r RefundRequest) GatewayResult
}
