package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"

	"github.com/oncepay/oncepay/api"
	"github.com/oncepay/oncepay/internal/cardnumber"
	"github.com/oncepay/oncepay/internal/checkout"
)

// Where the payment provider sends its events: by the rules of Standard Webhooks, or by Stripe's.
const (
	webhookRoute = basePath + "/webhooks/psp"
	stripeRoute  = basePath + "/webhooks/stripe"
)

// Events reads the events of a provider that has rules of its own. It is safe for concurrent use.
type Events interface {
	// Verify fails unless the provider has signed the body lately.
	Verify(body []byte, header http.Header) error
	// Read reads an event that was verified. Its errors are safe for the provider to see.
	Read(body []byte) (checkout.ProviderEvent, error)
}

var (
	errNoSecret         = errors.New("no secret is configured to verify the provider's events with")
	errInvalidSignature = problem{status: http.StatusUnauthorized, code: "invalid_signature", challenge: `StandardWebhooks realm="oncepay"`,
		detail: "The event is not signed with our secret, was changed, or is older than five minutes."}
)

// verify passes an event on if check finds that the provider has signed it. Its body is read
// without a seat: nobody knows yet whose it is, and strangers would hold all seats with bodies that
// they never finish. The bound of connections bounds the memory.
func (s *Server) verify(check func([]byte, http.Header) error, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			w.Header().Set("Connection", "close") // to keep it, net/http would read the rest
			s.fail(w, r, readProblem(err))
			return
		}
		if err := check(body, r.Header); err != nil {
			s.refuse(w, r, errInvalidSignature.because(err))
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

func (s *Server) checkStripe(body []byte, header http.Header) error {
	if s.cfg.Stripe == nil {
		return errNoSecret
	}
	return s.cfg.Stripe.Verify(body, header)
}

// ReceiveStripeEvent implements POST /webhooks/stripe.
func (h handlers) ReceiveStripeEvent(ctx context.Context, r api.ReceiveStripeEventRequestObject) (api.ReceiveStripeEventResponseObject, error) {
	event, err := h.stripe.Read(*r.Body)
	if err != nil {
		return nil, invalidRequest("The event was not read: %v.", err)
	}
	verdict, err := h.receive(ctx, event)
	return api.ReceiveStripeEvent200JSONResponse{Verdict: verdict}, err
}

// ReceiveProviderEvent implements POST /webhooks/psp.
func (h handlers) ReceiveProviderEvent(ctx context.Context, r api.ReceiveProviderEventRequestObject) (api.ReceiveProviderEventResponseObject, error) {
	if cardnumber.Contains(r.Params.WebhookID) || cardnumber.Contains(r.Body.Type) {
		return nil, errCardNumber
	}
	event := providerEventOf(r.Params.WebhookID, *r.Body)
	verdict, err := h.receive(ctx, event)
	return api.ReceiveProviderEvent200JSONResponse{Verdict: verdict}, err
}

func (h handlers) receive(ctx context.Context, event checkout.ProviderEvent) (api.ProviderEventVerdictVerdict, error) {
	verdict, err := h.service.HandleProviderEvent(ctx, event, EncodeSettled(ctx))
	if err == nil {
		h.observed(ctx, event, verdict)
	}
	return api.ProviderEventVerdictVerdict(verdict), err
}

// outcomes are what the type of an event says after its dot.
var outcomes = map[string]checkout.Outcome{"succeeded": checkout.OutcomeApproved, "declined": checkout.OutcomeDeclined}

// eventData are the members of an event's data that we read.
type eventData struct {
	ID             string `json:"id"`
	IdempotencyKey string `json:"idempotency_key"`
	Amount         int64  `json:"amount"`
	Currency       string `json:"currency"`
	DeclineCode    string `json:"decline_code"`
}

// providerEventOf reads an event by the provider's rules: it may have any members, and of any type.
// One that we read and cannot use counts as absent. What then follows from the event is for the
// domain to say: an amount that differs is a conflict, and a charge without a name is not ours.
func providerEventOf(id string, e api.ProviderEvent) checkout.ProviderEvent {
	object, tells, _ := strings.Cut(e.Type, ".")
	outcome, known := outcomes[tells]
	if !known {
		outcome = checkout.OutcomeUnknown
	}
	var data eventData
	if e.Data != nil {
		_ = json.Unmarshal(*e.Data, &data) // leaves the members that have another type as they are
	}
	return checkout.ProviderEvent{ID: id, Type: e.Type, Object: object, Subject: usable(data.IdempotencyKey),
		Amount: checkout.Money{Amount: data.Amount, Currency: usable(data.Currency)},
		Result: checkout.GatewayResult{Outcome: outcome, ProviderID: usable(data.ID), DeclineCode: usable(data.DeclineCode)}}
}

// maxEventText is the longest text of an event that is kept, in bytes.
const maxEventText = 255

// usable returns a text of an event if it may be stored and logged, and otherwise "".
func usable(text string) string {
	if len(text) > maxEventText || strings.ContainsRune(text, 0) || cardnumber.Contains(text) {
		return ""
	}
	return text
}

// observeProviderEvent counts and logs what an event led to. A person has to look into one that
// conflicts with what was settled.
func (s *Server) observeProviderEvent(ctx context.Context, e checkout.ProviderEvent, verdict checkout.Verdict) {
	if s.cfg.ObserveProviderEvent != nil {
		s.cfg.ObserveProviderEvent(e, verdict)
	}
	level := slog.LevelInfo
	switch verdict {
	case checkout.VerdictConflicting:
		level = slog.LevelError
	case checkout.VerdictUnknown:
		level = slog.LevelWarn
	}
	s.log.LogAttrs(ctx, level, "provider event", slog.String("event", "provider_event"), slog.String("request_id", RequestID(ctx)),
		slog.String("event_id", e.ID), slog.String("type", e.Type), slog.String("verdict", string(verdict)),
		slog.String("subject", e.Subject), slog.String("provider_id", e.Result.ProviderID),
		slog.Int64("amount", e.Amount.Amount), slog.String("currency", e.Amount.Currency))
}
