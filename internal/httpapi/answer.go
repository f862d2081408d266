package httpapi

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/oncepay/oncepay/api"
	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/internal/checkout"
)

// answer is a command's reply on its way out, byte for byte as it is stored. It
// serves every operation that takes a key.
type answer checkout.Reply

var (
	_ api.CreateCustomerResponseObject = answer{}
	_ api.UpdateCustomerResponseObject = answer{}
	_ api.CreateTopUpResponseObject    = answer{}
	_ api.CreateOrderResponseObject    = answer{}
	_ api.UpdateOrderResponseObject    = answer{}
	_ api.CreatePaymentResponseObject  = answer{}
	_ api.CreateRefundResponseObject   = answer{}
)

// VisitCreateCustomerResponse writes the answer; so do those below.
func (a answer) VisitCreateCustomerResponse(w http.ResponseWriter) error { return a.write(w) }

// VisitUpdateCustomerResponse writes the answer.
func (a answer) VisitUpdateCustomerResponse(w http.ResponseWriter) error { return a.write(w) }

// VisitCreateTopUpResponse writes the answer.
func (a answer) VisitCreateTopUpResponse(w http.ResponseWriter) error { return a.write(w) }

// VisitCreateOrderResponse writes the answer.
func (a answer) VisitCreateOrderResponse(w http.ResponseWriter) error { return a.write(w) }

// VisitUpdateOrderResponse writes the answer.
func (a answer) VisitUpdateOrderResponse(w http.ResponseWriter) error { return a.write(w) }

// VisitCreatePaymentResponse writes the answer.
func (a answer) VisitCreatePaymentResponse(w http.ResponseWriter) error { return a.write(w) }

// VisitCreateRefundResponse writes the answer.
func (a answer) VisitCreateRefundResponse(w http.ResponseWriter) error { return a.write(w) }

func (a answer) write(w http.ResponseWriter) error {
	for name, value := range a.Header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body) // the client may be gone
	return nil
}

// callOf says on whose behalf a command runs and under which key. The operation
// is a name for people who read the authority's rows.
func callOf(ctx context.Context, operation string) checkout.Call {
	call := checkout.Call{Account: exchangeOf(ctx).account}
	if claim := idempotency.ClaimFrom(ctx); claim != nil {
		call.Claim = &checkout.Claim{
			Key: claim.Key, Fingerprint: claim.Fingerprint, Operation: operation, TTL: claim.TTL,
			TraceParent: claim.TraceParent}
	}
	return call
}

// answered passes a command's reply on, and tells the idempotency stage when
// the authority had it from before.
func answered(ctx context.Context, reply checkout.Reply, err error) (answer, error) {
	if claim := idempotency.ClaimFrom(ctx); err == nil && reply.Replayed && claim != nil {
		claim.ReplayedFrom(reply.TraceParent)
	}
	return answer(reply), err
}

// accountOf is whose resources a request may see.
func accountOf(ctx context.Context) uuid.UUID { return exchangeOf(ctx).account }
