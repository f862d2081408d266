package checkout

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
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

// unknownAge is the result while the age of what was begun is not known. What was begun was timed
// well, or else its key could not have been claimed.
var unknownAge = GatewayResult{Outcome: OutcomeUnknown, Cause: errors.New("the clocks of the store and of this process differ by half an hour")}

// isFarOff reports whether the store timed an attempt otherwise than this process does: one of the
// two clocks is wrong.
func isFarOff(attempted time.Time) bool { return time.Since(attempted).Abs() > MaxRequestAge }

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

// send makes one attempt: it asks the provider, or looks the operation up. What is known to be at
// the provider is only looked up. It never returns that the operation is absent. A rejection
// settles the first attempt, because nothing was sent before it. After a later attempt it may be
// that an earlier one has moved the money, which the provider's books show, or still will.
func (k kind[W, T]) send(ctx context.Context, taken Taken[T]) GatewayResult {
	value, at := taken.Value, taken.Value.Common()
	if isFarOff(at.UpdatedAt) {
		return unknownAge
	}
	if at.ProviderID != "" { // under the key it repeats its first answer, and only a look-up shows news
		return k.lookUp(ctx, value).unknownIfAbsent()
	}
	if at.age() > maxBlindAge {
		found := k.lookUp(ctx, value)
		switch {
		case at.age() > minAbsentAge:
			return found.declinedIfAbsent()
		case at.age() > maxSendAge || found.Outcome != OutcomeAbsent:
			return found.unknownIfAbsent()
		}
	}
	result := k.ask(ctx, value)
	switch {
	case taken.Call.Claim.Attempt == 1:
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
