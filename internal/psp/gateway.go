package psp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/oncepay/oncepay/internal/checkout"
)

// maxReply bounds an answer: an honest one has a few hundred bytes.
const maxReply = 64 << 10

// Gateway is the gateway to the provider simulator, cmd/pspsim. Safe for concurrent use.
type Gateway struct {
	baseURL string
	timeout time.Duration
	client  *http.Client
	close   func() // the idle connections
}

// Option configures a [Gateway].
type Option func(*Gateway)

// WithTransport wraps the gateway's transport, for tracing. The wrapper must send each request once
// and must not set GetBody.
func WithTransport(wrap func(http.RoundTripper) http.RoundTripper) Option {
	return func(s *Gateway) { s.client.Transport = wrap(s.client.Transport) }
}

var _ checkout.Gateway = (*Gateway)(nil)

// NewGateway returns a gateway to the simulator at baseURL, such as http://127.0.0.1:8090. A call
// whose answer takes longer than timeout, which must be above zero, has an unknown outcome.
func NewGateway(baseURL string, timeout time.Duration, options ...Option) *Gateway {
	client := NewClient()
	s := &Gateway{baseURL: baseURL, timeout: timeout, client: client, close: client.Transport.(*http.Transport).CloseIdleConnections}
	for _, option := range options {
		option(s)
	}
	return s
}

// Close closes the idle connections; running calls continue.
func (s *Gateway) Close() { s.close() }

type chargeBody struct {
	Amount    int64  `json:"amount"`
	Currency  string `json:"currency"`
	Reference string `json:"reference"`
	Source    string `json:"source"`
}

type refundBody struct {
	Charge    string `json:"charge"`
	Amount    int64  `json:"amount"`
	Currency  string `json:"currency"`
	Reference string `json:"reference"`
}

// Supports reports that the simulator can charge every amount.
func (s *Gateway) Supports(checkout.Money) bool { return true }

// Charge takes money from the card behind the token. Absent with the code invalid_token means that
// the provider does not know the token. It may check the token before it looks at the key, so that
// an earlier request with the key may have charged all the same.
func (s *Gateway) Charge(ctx context.Context, r checkout.ChargeRequest) checkout.GatewayResult {
	status, raw, err := s.post(ctx, "/v1/charges", r.IdempotencyKey, chargeBody{
		Amount: r.Amount.Amount, Currency: r.Amount.Currency, Reference: r.Reference, Source: r.Token,
	})
	if err != nil {
		return unknown(fmt.Errorf("charge at simulator: %w", err))
	}
	return classifyCharge(status, raw, r)
}

// FindCharge looks for the charge with the request's key. Absent with the code not_charged means
// that the provider has none.
func (s *Gateway) FindCharge(ctx context.Context, r checkout.ChargeRequest) checkout.GatewayResult {
	status, raw, err := s.get(ctx, "/v1/charges", r.IdempotencyKey)
	if err != nil {
		return unknown(fmt.Errorf("look up charge at simulator: %w", err))
	}
	return classifyListed(status, raw, askedOf(r), notCharged)
}

// FindRefund looks for the refund with the request's key. Absent with the code not_refunded means
// that the provider has none.
func (s *Gateway) FindRefund(ctx context.Context, r checkout.RefundRequest) checkout.GatewayResult {
	status, raw, err := s.get(ctx, "/v1/refunds", r.IdempotencyKey)
	if err != nil {
		return unknown(fmt.Errorf("look up refund at simulator: %w", err))
	}
	return classifyListed(status, raw, askedOfRefund(r), notRefunded)
}

// Refund refunds a charge or a part of it.
func (s *Gateway) Refund(ctx context.Context, r checkout.RefundRequest) checkout.GatewayResult {
	status, raw, err := s.post(ctx, "/v1/refunds", r.IdempotencyKey, refundBody{
		Charge: r.ChargeID, Amount: r.Amount.Amount, Currency: r.Amount.Currency, Reference: r.Reference,
	})
	if err != nil {
		return unknown(fmt.Errorf("refund at simulator: %w", err))
	}
	return classifyRefund(status, raw, r)
}

// post sends the body once and returns the status and the whole reply.
func (s *Gateway) post(ctx context.Context, path, key string, body any) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	request, err := s.request(ctx, path, key, body)
	if err != nil {
		return 0, nil, err
	}
	return s.do(request)
}

// get lists what was sent under the key, which is one entry at most: an order may have more than a
// reply holds.
func (s *Gateway) get(ctx context.Context, path, key string) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	target, err := url.JoinPath(s.baseURL, path)
	if err != nil {
		return 0, nil, fmt.Errorf("provider address: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target+"?key="+url.QueryEscape(key), http.NoBody)
	if err != nil {
		return 0, nil, err
	}
	return s.do(request)
}

// do sends the request and returns the status and the whole reply.
func (s *Gateway) do(request *http.Request) (int, []byte, error) {
	response, err := s.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxReply+1))
	if err != nil {
		return 0, nil, fmt.Errorf("read reply with status %d: %w", response.StatusCode, err)
	}
	if len(raw) > maxReply {
		return 0, nil, fmt.Errorf("reply with status %d exceeds %d bytes", response.StatusCode, maxReply)
	}
	return response.StatusCode, raw, nil
}

func (s *Gateway) request(ctx context.Context, path, key string, body any) (*http.Request, error) {
	target, err := url.JoinPath(s.baseURL, path)
	if err != nil {
		return nil, fmt.Errorf("provider address: %w", err)
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	// http.Transport silently sends a request again when a kept-alive connection turns out dead,
	// and an Idempotency-Key makes it think so of a POST, too. It can do that only if it can rewind
	// the body; so it can't, and a stale connection is an error here. (net/http: Transport, "safe
	// to retry"; Request.GetBody.)
	request.GetBody = nil
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", key)
	return request, nil
}
