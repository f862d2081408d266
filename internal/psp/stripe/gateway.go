package stripe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v85"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/psp"
)

const (
	// KeyMember names our provider key in Stripe's metadata.
	KeyMember = "oncepay_key"
	// ReferenceMember names our reference there.
	ReferenceMember = "oncepay_reference"

	// headerReplayed marks an answer that Stripe has kept under the key: that of the first request
	// with it (Stripe documentation, "Advanced error handling").
	headerReplayed = "Idempotent-Replayed"

	// Version is the version of Stripe's API that this package was written for. An endpoint for
	// webhooks must be registered with it.
	Version = stripe.APIVersion

	// clockSkew is by how much Stripe's clock may differ from the store's.
	clockSkew = 10 * time.Minute
	// sentFor is how long after it was begun a payment is sent: checkout sends none after 23 h.
	sentFor = 24 * time.Hour
	// pageSize is the largest that Stripe's lists have, and maxListed bounds a look-up to 50 calls.
	// More payments than this within the time of one payment need its ID.
	pageSize  = 100
	maxListed = 50 * pageSize
)

// IsKey reports whether the text has the form of a key that may charge: a secret or a restricted
// key.
func IsKey(key string) bool {
	kind, _, _ := strings.Cut(key, "_")
	return (kind == "sk" || kind == "rk") && (IsLive(key) || strings.HasPrefix(key[2:], "_test_")) && len(key) > len("sk_test_")
}

// IsLive reports whether a key is of live mode, and so moves money.
func IsLive(key string) bool { return len(key) > 2 && strings.HasPrefix(key[2:], "_live_") }

// Gateway is the gateway to Stripe. It is safe for concurrent use.
type Gateway struct {
	client  *stripe.Client
	timeout time.Duration
	close   func()
}

var _ checkout.Gateway = (*Gateway)(nil)

// NewGateway returns a gateway that uses the secret key, such as sk_test_…, at the base URL of the
// API; "" is https://api.stripe.com. A call whose answer takes longer than timeout, which must be
// above zero, has an unknown outcome. The wrapper, for tracing, may be nil; it must send each
// request once.
func NewGateway(secretKey, baseURL string, timeout time.Duration, wrap func(http.RoundTripper) http.RoundTripper) *Gateway {
	client := psp.NewClient()
	idle := client.CloseIdleConnections
	if wrap != nil {
		client.Transport = wrap(client.Transport)
	}
	client.Transport = once{client.Transport}
	config := &stripe.BackendConfig{
		HTTPClient:        client,
		MaxNetworkRetries: stripe.Int64(0), // who retries is decided above, where the fence is
		EnableTelemetry:   stripe.Bool(false),
		LeveledLogger:     &stripe.LeveledLogger{Level: stripe.LevelNull}, // causes are logged above
	}
	if baseURL != "" {
		config.URL = stripe.String(baseURL)
	}
	backends := stripe.NewBackendsWithConfig(config)
	return &Gateway{client: stripe.NewClient(secretKey, stripe.WithBackends(backends)), timeout: timeout, close: idle}
}

// Close closes the idle connections; running calls continue.
func (g *Gateway) Close() { g.close() }

// once keeps net/http from sending a request again on another connection, which it does with each
// request that carries an Idempotency-Key and whose body it can rewind. (net/http: Transport.)
type once struct{ next http.RoundTripper }

func (o once) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := r.Clone(r.Context())
	sent.GetBody = nil
	return o.next.RoundTrip(sent)
}

// Charge takes money from a payment method (pm_…), which Stripe.js makes of a card. A card that
// wants its owner to confirm the payment declines: nobody is there who could.
func (g *Gateway) Charge(ctx context.Context, r checkout.ChargeRequest) checkout.GatewayResult {
	if !strings.HasPrefix(r.Token, "pm_") { // Stripe would take it for a parameter of ours that is wrong
		return checkout.GatewayResult{Outcome: checkout.OutcomeAbsent, DeclineCode: invalidToken}
	}
	units, exact := unitsOf(r.Amount)
	if !exact {
		return checkout.GatewayResult{Outcome: checkout.OutcomeAbsent, DeclineCode: notSupported}
	}
	calling, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	params := &stripe.PaymentIntentCreateParams{
		Amount:                stripe.Int64(units),
		Currency:              stripe.String(strings.ToLower(r.Amount.Currency)),
		Confirm:               stripe.Bool(true),
		ErrorOnRequiresAction: stripe.Bool(true),
		PaymentMethod:         stripe.String(r.Token),
		PaymentMethodTypes:    stripe.StringSlice([]string{"card"}),
		Metadata:              metadata(r.IdempotencyKey, r.Reference),
	}
	params.SetIdempotencyKey(r.IdempotencyKey)
	intent, err := g.client.V1PaymentIntents.Create(calling, params)
	if err == nil {
		return ofIntent(intent, r)
	}
	return g.refused(err, "charge",
		func(e *stripe.Error) checkout.GatewayResult { return chargeRefused(e, r) },
		func() checkout.GatewayResult { return g.FindCharge(ctx, r) })
}

// FindCharge retrieves the PaymentIntent if its ID is known, and otherwise looks for the one with
// the request's provider key. Absent with the code not_charged means that Stripe has none.
func (g *Gateway) FindCharge(ctx context.Context, r checkout.ChargeRequest) checkout.GatewayResult {
	ctx, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	if r.ProviderID != "" {
		intent, err := g.client.V1PaymentIntents.Retrieve(ctx, r.ProviderID, nil)
		if err != nil {
			return unknown("retrieve payment intent", err)
		}
		return ofIntent(intent, r)
	}
	if r.Begun.IsZero() {
		return unknown("list payment intents", errors.New("it is not known when the payment was begun"))
	}
	params := &stripe.PaymentIntentListParams{CreatedRange: &stripe.RangeQueryParams{
		GreaterThanOrEqual: r.Begun.Add(-clockSkew).Unix(), LesserThanOrEqual: r.Begun.Add(sentFor + clockSkew).Unix()}}
	params.Limit = stripe.Int64(pageSize)
	return find(ctx, g.client.V1PaymentIntents.List(ctx, params).All(ctx), r.IdempotencyKey, notCharged,
		func(i *stripe.PaymentIntent) (string, checkout.GatewayResult) {
			return i.Metadata[KeyMember], ofIntent(i, r)
		})
}

// Refund refunds a charge or a part of it.
func (g *Gateway) Refund(ctx context.Context, r checkout.RefundRequest) checkout.GatewayResult {
	units, exact := unitsOf(r.Amount)
	if !exact {
		return checkout.GatewayResult{Outcome: checkout.OutcomeAbsent, DeclineCode: notSupported}
	}
	calling, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	params := &stripe.RefundCreateParams{
		PaymentIntent: stripe.String(r.ChargeID),
		Amount:        stripe.Int64(units),
		Metadata:      metadata(r.IdempotencyKey, r.Reference),
	}
	params.SetIdempotencyKey(r.IdempotencyKey)
	refund, err := g.client.V1Refunds.Create(calling, params)
	if err == nil {
		return ofRefund(refund, r)
	}
	return g.refused(err, "refund", refundRefused, func() checkout.GatewayResult { return g.FindRefund(ctx, r) })
}

// FindRefund retrieves the refund if its ID is known, and otherwise looks for the request's
// provider key among the refunds of the charge. Absent with the code not_refunded means that Stripe
// has none.
func (g *Gateway) FindRefund(ctx context.Context, r checkout.RefundRequest) checkout.GatewayResult {
	ctx, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	if r.ProviderID != "" {
		refund, err := g.client.V1Refunds.Retrieve(ctx, r.ProviderID, nil)
		if err != nil {
			return unknown("retrieve refund", err)
		}
		return ofRefund(refund, r)
	}
	params := &stripe.RefundListParams{PaymentIntent: stripe.String(r.ChargeID)}
	params.Limit = stripe.Int64(pageSize)
	return find(ctx, g.client.V1Refunds.List(ctx, params).All(ctx), r.IdempotencyKey, notRefunded,
		func(f *stripe.Refund) (string, checkout.GatewayResult) { return f.Metadata[KeyMember], ofRefund(f, r) })
}

// find returns the result of the entry with the key. A list that was not read to its end proves
// nothing about what it did not show.
func find[T any](ctx context.Context, entries stripe.Seq2[T, error], key, missing string,
	read func(T) (string, checkout.GatewayResult),
) checkout.GatewayResult {
	result := checkout.GatewayResult{Outcome: checkout.OutcomeAbsent, DeclineCode: missing}
	listed := 0
	entries(func(entry T, err error) bool {
		if err != nil {
			result = unknown("list", err)
			return false
		}
		if listed++; listed > maxListed {
			result = unknown("list", fmt.Errorf("more than %d entries, and none has the key", maxListed))
			return false
		}
		if entryKey, found := read(entry); entryKey == key {
			result = found
			return false
		}
		return true
	})
	if err := ctx.Err(); err != nil && result.Outcome == checkout.OutcomeAbsent {
		return unknown("list", err)
	}
	return result
}

// refused returns what an error means: what rejected says of a complete answer of Stripe; after a
// 5xx, which Stripe repeats under the key, what look-up finds; unknown otherwise.
func (g *Gateway) refused(err error, asked string, rejected func(*stripe.Error) checkout.GatewayResult,
	lookUp func() checkout.GatewayResult,
) checkout.GatewayResult {
	var e *stripe.Error
	if !errors.As(err, &e) {
		return unknown(asked, err)
	}
	if e.HTTPStatusCode < http.StatusInternalServerError {
		result := rejected(e)
		if result.Outcome == checkout.OutcomeAbsent && e.LastResponse != nil && e.LastResponse.Header.Get(headerReplayed) == "true" {
			result.Outcome = checkout.OutcomeDeclined // the first request with the key was rejected, and so are all others
		}
		return result
	}
	found := lookUp()
	if found.Outcome == checkout.OutcomeAbsent { // the request that failed may still be under way
		return unknown(asked, e)
	}
	return found
}

func metadata(key, reference string) map[string]string {
	return map[string]string{KeyMember: key, ReferenceMember: reference}
}
