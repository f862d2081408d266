package httpapi

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/oncepay/oncepay/api"
	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/authority"
	"github.com/oncepay/oncepay/internal/checkout"
)

// handlers translate between the API's types and the service's. They decide nothing.
type handlers struct {
	service *checkout.Service
	records idempotency.Store
	// tombstoneTTL is how long it is remembered that a key moved money.
	tombstoneTTL time.Duration
	stripe       Events
	observed     func(context.Context, checkout.ProviderEvent, checkout.Verdict)
}

var _ api.StrictServerInterface = handlers{}

// callOf returns the account and the key that a command runs under, and how its answer is
// rendered. The operation is stored with the key, and clients see it in the look-up of the key.
func callOf[T any](ctx context.Context, operation string, r render[T]) checkout.Call {
	call := checkout.Call{Account: exchangeOf(ctx).account, Encode: r.encode}
	if claim := idempotency.ClaimFrom(ctx); claim != nil {
		call.Claim = &checkout.Claim{
			Key: claim.Key, Fingerprint: claim.Fingerprint, Operation: operation, TTL: claim.TTL,
			ArrivedAt: exchangeOf(ctx).arrivedAt}
	}
	return call
}

// money is the call of a command that moves money. Its key leaves a tombstone.
func (h handlers) money(call checkout.Call) checkout.Call {
	if call.Claim != nil {
		call.Claim.TombstoneTTL = h.tombstoneTTL
	}
	return call
}

// answered returns a command's answer, which the authority has kept, and tells the idempotency
// stage so, and when it is a replay.
func answered(ctx context.Context, given checkout.Answer, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	kept := contentOf(given)
	claim := idempotency.ClaimFrom(ctx)
	if claim == nil {
		return answer(kept.Answer), nil
	}
	claim.Keep()
	if kept.Replayed {
		claim.ReplayedFrom(kept.TraceParent)
		claim.KeepFor(kept.KeptFor)
	}
	return answer(kept.Answer), nil
}

// contentOf is what the domain does not look into.
func contentOf(a checkout.Answer) authority.Result { return a.Content.(authority.Result) }

// accountOf returns the account whose resources a request may see.
func accountOf(ctx context.Context) uuid.UUID { return exchangeOf(ctx).account }
