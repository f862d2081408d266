package checkout

import (
	"context"
	"fmt"
	"time"
)

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
	// Begun is when the payment was begun, by the store's clock: a look-up of a provider that lists
	// by time starts there.
	Begun time.Time
	// ProviderID is the provider's ID of the charge where an earlier attempt learned it; else "".
	ProviderID string
}

// RefundRequest asks a provider to refund a charge or a part of it.
type RefundRequest struct {
	IdempotencyKey string
	ChargeID       string
	Amount         Money
	Reference      string // our refund, for the provider's audit
	ProviderID     string // of the refund, as that of a charge
}

// GatewayResult is a provider's answer.
type GatewayResult struct {
	Outcome     Outcome
	ProviderID  string // of the charge or refund: when approved, and otherwise where the provider named it
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
	// Supports reports whether the provider can charge the amount. It asks nobody.
	Supports(amount Money) bool

	Charge(ctx context.Context, r ChargeRequest) GatewayResult
	Refund(ctx context.Context, r RefundRequest) GatewayResult

	// FindCharge and FindRefund look up what became of the request with this key, and move nothing.
	FindCharge(ctx context.Context, r ChargeRequest) GatewayResult
	FindRefund(ctx context.Context, r RefundRequest) GatewayResult
}
