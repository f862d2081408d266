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

// webhookRoute is where the payment provider tells what it did.
const webhookRoute = basePath + "/webhooks/psp"

var (
	errNoSecret         = errors.New("no secret is configured to verify the provider's events with")
	errInvalidSignature = problem{status: http.StatusUnauthorized, code: "invalid_signature",
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

// verify lets an event through that is signed, over its ID, its time and every
// byte of its body, and is at most five minutes old (Standard Webhooks 1.0.0,
// "Signature scheme" and "Verifying webhook authenticity").
func (s *Server) verify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body) // limitBody bounds it
		if err != nil {
			s.fail(w, r, readProblem(err))
			return
		}
		if err := s.checkSignature(body, r.Header); err != nil {
			s.fail(w, r, errInvalidSignature.because(err))
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
	notice := noticeOf(r.Params.WebhookID, *r.Body)
	verdict, err := h.service.TakeNotice(ctx, notice, RenderPayment(ctx), RenderRefund(ctx))
	if err != nil {
		return nil, err
	}
	h.noticed(ctx, notice, verdict)
	return api.ReceiveProviderEvent200JSONResponse{Verdict: api.ProviderEventVerdictVerdict(verdict)}, nil
}

// outcomes are those that a type of event tells of after its dot.
var outcomes = map[string]checkout.Outcome{"succeeded": checkout.OutcomeApproved, "declined": checkout.OutcomeDeclined}

func noticeOf(id string, e api.ProviderEvent) checkout.Notice {
	object, tells, _ := strings.Cut(e.Type, ".")
	outcome, known := outcomes[tells]
	if !known {
		outcome = checkout.OutcomeUnknown
	}
	notice := checkout.Notice{EventID: id, Type: e.Type, Object: object, Subject: valueOf(e.Data.IdempotencyKey),
		Result: checkout.GatewayResult{Outcome: outcome, ProviderID: valueOf(e.Data.ID), DeclineCode: valueOf(e.Data.DeclineCode)}}
	notice.Amount.Currency = valueOf(e.Data.Currency)
	if e.Data.Amount != nil {
		notice.Amount.Amount = *e.Data.Amount
	}
	return notice
}

// noticed notes what became of an event. A person has to look into one that
// contradicts what was settled.
func (s *Server) noticed(ctx context.Context, n checkout.Notice, verdict checkout.Verdict) {
	if s.cfg.ObserveNotice != nil {
		s.cfg.ObserveNotice(n, verdict)
	}
	level := slog.LevelInfo
	switch verdict {
	case checkout.VerdictConflicting:
		level = slog.LevelError
	case checkout.VerdictUnknown:
		level = slog.LevelWarn
	}
	s.log.LogAttrs(ctx, level, "provider event", slog.String("event", "psp_webhook"), slog.String("request_id", RequestID(ctx)),
		slog.String("event_id", n.EventID), slog.String("type", n.Type), slog.String("verdict", string(verdict)),
		slog.String("subject", n.Subject), slog.String("provider_id", n.Result.ProviderID),
		slog.Int64("amount", n.Amount.Amount), slog.String("currency", n.Amount.Currency))
}
