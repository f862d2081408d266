package stripe

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stripe/stripe-go/v85"
	"github.com/stripe/stripe-go/v85/webhook"

	"github.com/oncepay/oncepay/internal/checkout"
)

// ErrUnsigned means that an event is not signed with one of the secrets, was changed, or is more
// than five minutes old (Stripe documentation, "Verify webhook signatures").
var ErrUnsigned = errors.New("the event is not signed by Stripe with our secret")

// ErrOtherMode means that an event is of Stripe's test mode and the gateway's key of live mode, or
// the other way round.
var ErrOtherMode = errors.New("the event is of the other mode of Stripe (test or live) than our key")

// ErrOtherAccount means that an event is about an account that is connected to ours.
var ErrOtherAccount = errors.New("the event is about another account of Stripe")

// Events reads the events of one endpoint. It is safe for concurrent use.
type Events struct {
	// Secret is the signing secret of the endpoint. While it is being replaced, Stripe signs with
	// both ("Roll endpoint signing secrets"), so one is enough. With none, every event is
	// unsigned.
	Secret string
	// Live says of which mode the events are.
	Live bool
}

// Verify checks the signature of an event.
func (e Events) Verify(body []byte, header http.Header) error {
	if e.Secret == "" {
		return ErrUnsigned
	}
	if err := webhook.ValidatePayload(body, header.Get("Stripe-Signature"), e.Secret); err != nil {
		return fmt.Errorf("%w: %w", ErrUnsigned, err)
	}
	return nil
}

// Read reads an event whose signature was verified. An event of another type than those of
// PaymentIntents and refunds has no object that checkout knows, and is only recorded. Stripe
// delivers events late, more than once and in any order.
func (e Events) Read(body []byte) (checkout.ProviderEvent, error) {
	var event struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Account  string `json:"account"`
		Livemode bool   `json:"livemode"`
		Data     struct {
			Object jsontext.Value `json:"object"`
		} `json:"data"`
	}
	switch err := json.Unmarshal(body, &event); {
	case err != nil:
		return checkout.ProviderEvent{}, errors.New("it is not JSON of an event")
	case event.ID == "" || event.Type == "":
		return checkout.ProviderEvent{}, errors.New("it has no id or no type")
	case event.Account != "":
		return checkout.ProviderEvent{}, ErrOtherAccount
	case event.Livemode != e.Live:
		return checkout.ProviderEvent{}, ErrOtherMode
	}
	read := checkout.ProviderEvent{ID: event.ID, Type: event.Type, Result: unknown("event", errors.New("it says no outcome"))}
	switch event.Type {
	case "payment_intent.succeeded", "payment_intent.payment_failed", "payment_intent.canceled", "payment_intent.processing":
		var intent stripe.PaymentIntent
		if err := json.Unmarshal(event.Data.Object, &intent); err != nil {
			return checkout.ProviderEvent{}, errors.New("its object is not a payment intent")
		}
		read.Object, read.Subject = checkout.ObjectCharge, intent.Metadata[KeyMember]
		read.Amount = moneyOf(intent.Amount, intent.Currency)
		read.Result = ofIntent(&intent, checkout.ChargeRequest{IdempotencyKey: read.Subject, Amount: read.Amount,
			Reference: intent.Metadata[ReferenceMember]})
	case "refund.created", "refund.updated", "refund.failed":
		var refund stripe.Refund
		if err := json.Unmarshal(event.Data.Object, &refund); err != nil {
			return checkout.ProviderEvent{}, errors.New("its object is not a refund")
		}
		read.Object, read.Subject = checkout.ObjectRefund, refund.Metadata[KeyMember]
		read.Amount = moneyOf(refund.Amount, refund.Currency)
		read.Result = ofRefund(&refund, checkout.RefundRequest{IdempotencyKey: read.Subject, Amount: read.Amount,
			Reference: refund.Metadata[ReferenceMember], ChargeID: chargeOf(&refund)})
	}
	return read, nil
}

func chargeOf(refund *stripe.Refund) string {
	if refund.PaymentIntent == nil {
		return ""
	}
	return refund.PaymentIntent.ID
}
