package checkout

import (
	"cmp"
	"time"

	"github.com/google/uuid"
)

// Operation is what a payment and a refund have in common: both move money, from or to a wallet at
// once, or at the payment provider.
type Operation struct {
	ID          uuid.UUID
	Amount      Money
	Status      Status
	DeclineCode string
	ProviderID  string // the provider's charge or refund, as soon as it is known; empty for the wallet
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// Status is a state of a payment or a refund.
type Status string

// The states of a payment or a refund. Processing means that the provider may or may not have moved
// the money: an unknown outcome is no failure.
const (
	StatusProcessing Status = "processing"
	StatusSucceeded  Status = "succeeded"
	StatusDeclined   Status = "declined"
)

// Common is what a payment or a refund has in common with the other, for code that handles both.
func (o Operation) Common() Operation { return o }

// MaySettle says whether an attempt may settle the locked operation: not if it is settled already.
// The fence between attempts is in the key's row, see [Claim].Attempt.
func (o Operation) MaySettle() bool { return o.Status == StatusProcessing }

// age is that of the operation when its newest attempt began, by the store's clock.
func (o Operation) age() time.Duration { return o.UpdatedAt.Sub(o.CreatedAt) }

// settled is the operation after the provider's answer, which must not be unknown.
func (o Operation) settled(result GatewayResult, now time.Time) Operation {
	o.Status, o.ProviderID, o.UpdatedAt = StatusSucceeded, cmp.Or(result.ProviderID, o.ProviderID), now
	if result.Outcome == OutcomeDeclined {
		o.Status, o.DeclineCode = StatusDeclined, result.DeclineCode
	}
	return o
}

// Match compares an event with the operation. It conflicts with one that was settled with another
// outcome, or that has another charge or refund at the provider.
func (o Operation) Match(e ProviderEvent) Verdict {
	declined := e.Result.Outcome == OutcomeDeclined
	switch {
	case e.Amount != o.Amount, o.ProviderID != "" && e.Result.ProviderID != "" && o.ProviderID != e.Result.ProviderID:
		return VerdictConflicting
	case o.Status == StatusProcessing:
		return VerdictSettled
	case o.Status == StatusDeclined && declined, o.Status == StatusSucceeded && !declined && o.ProviderID == e.Result.ProviderID:
		return VerdictConfirmed
	}
	return VerdictConflicting
}
