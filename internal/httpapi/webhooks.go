package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/oncepay/oncepay/api"
	"github.com/oncepay/oncepay/internal/checkout"
)

// webhookRoute is where the payment provider sends its events.
const webhookRoute = basePath + "/webhooks/psp"

var (
	errNoSecret         = errors.New("no secret is configured to verify the provider's events with")
	errInvalidSignature = problem{status: http.StatusUnauthorized, code: "invalid_signature", challenge: `StandardWebhooks realm="oncepay"`,
		detail: "The event is not signed with our secret, was changed, or is older than five minutes."}
)

// newSignature reads a secret of Standard Webhooks; "" is none.
func newSignature(secret string) (*standardwebhooks.Webhook, error) {
	if secret == "" {
		return nil, nil
	}
	if strings.TrimPrefix(secret, "whsec_") == "" { // anybody could sign with it
		return nil, errors.New("httpapi: the webhook secret is empty")
	}
	signature, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return nil, fmt.Errorf("httpapi: the webhook secret: %w", err)
	}
	return signature, nil
}

// verify passes an event on that is signed, over its ID, its time and every byte of its body, and
// is at most five minutes old (Standard Webhooks 1.0.0, "Signature scheme" and "Verifying webhook
// authenticity").
func (s *Server) verify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := s.readInTurn(r)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		if err := s.checkSignature(body, r.Header); err != nil {
			s.refuse(w, r, errInvalidSignature.because(err))
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

func (s *Server) checkSignature(body []byte, header http.Header) error {
	if s.signature == nil {
		return errNoSecret
	}
	return s.signature.Verify(body, header)
}

// ReceiveProviderEvent implements POST /webhooks/psp.
func (h handlers) ReceiveProviderEvent(ctx context.Context, r api.ReceiveProviderEventRequestObject) (api.ReceiveProviderEventResponseObject, error) {
	event := providerEventOf(r.Params.WebhookID, *r.Body)
	verdict, err := h.service.HandleProviderEvent(ctx, event, EncodeSettled(ctx))
	if err != nil {
		return nil, err
	}
	h.observed(ctx, event, verdict)
	return api.ReceiveProviderEvent200JSONResponse{Verdict: api.ProviderEventVerdictVerdict(verdict)}, nil
}

// outcomes are what the type of an event says after its dot.
var outcomes = map[string]checkout.Outcome{"succeeded": checkout.OutcomeApproved, "declined": checkout.OutcomeDeclined}

func providerEventOf(id string, e api.ProviderEvent) checkout.ProviderEvent {
	object, tells, _ := strings.Cut(e.Type, ".")
	outcome, known := outcomes[tells]
	if !known {
		outcome = checkout.OutcomeUnknown
	}
	event := checkout.ProviderEvent{ID: id, Type: e.Type, Object: object, Subject: valueOf(e.Data.IdempotencyKey),
		Result: checkout.GatewayResult{Outcome: outcome, ProviderID: valueOf(e.Data.ID), DeclineCode: valueOf(e.Data.DeclineCode)}}
	event.Amount.Currency = valueOf(e.Data.Currency)
	if e.Data.Amount != nil {
		event.Amount.Amount = *e.Data.Amount
	}
	return event
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
