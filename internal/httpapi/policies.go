package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/oncepay/oncepay/idempotency"
)

// What a client may ask for by Prefer: wait=<seconds>, instead of a 409 at once.
const (
	// maxMoneyWait covers most slow providers, and nginx waits longer.
	maxMoneyWait = 30 * time.Second
	// maxChangeWait is far above what a change takes. nginx passes requests that
	// take 12 s on to the other replica.
	maxChangeWait = 10 * time.Second
)

// keyedRoutes says for each route that takes a key how it treats it. What moves
// money fails closed: without the store two attempts could ask the provider at
// once, and although it charges once, the client should not have to trust that.
// The others fail open, because there the authority alone can decide.
func keyedRoutes(cfg Config) map[string]*idempotency.Policy {
	money := idempotency.Policy{
		Required: true, TTL: cfg.PaymentTTL, Lease: cfg.Lease, Deadline: cfg.PaymentDeadline,
		MaxWait: maxMoneyWait, OnUnavailable: idempotency.FailClosed,
		ExcludedFields: []string{"client_timestamp", "request_nonce"},
	}
	change := idempotency.Policy{
		Required: true, TTL: cfg.OrderTTL, Lease: cfg.Lease, Deadline: cfg.OrderDeadline,
		MaxWait: maxChangeWait, OnUnavailable: idempotency.FailOpen,
	}
	optional := change
	optional.Required = false
	return map[string]*idempotency.Policy{
		"POST /v1/orders/{order_id}/payments":      &money,
		"POST /v1/payments/{payment_id}/refunds":   &money,
		"POST /v1/customers/{customer_id}/top-ups": &money,
		"POST /v1/orders":                          &change,
		"PATCH /v1/orders/{order_id}":              &change,
		"POST /v1/customers":                       &change,
		"PATCH /v1/customers/{customer_id}":        &optional,
	}
}

// idempotent is the idempotency stage. An account is the scope of its keys.
func (s *Server) idempotent(policies map[string]*idempotency.Policy) *idempotency.Middleware {
	policyFor := func(r *http.Request) *idempotency.Policy { return policies[r.Method+" "+routeOf(r)] }
	traceParent := s.cfg.TraceParent
	if traceParent == nil {
		traceParent = func(context.Context) string { return "" }
	}
	return idempotency.New(s.cfg.Store, policyFor,
		idempotency.WithTraceParent(traceParent),
		idempotency.WithScope(func(r *http.Request) string { return exchangeOf(r.Context()).account.String() }),
		idempotency.WithErrorWriter(func(w http.ResponseWriter, r *http.Request, e *idempotency.Error) { s.fail(w, r, e) }),
		idempotency.WithObserver(s.observe),
		idempotency.WithLogger(s.log))
}

func (s *Server) observe(r *http.Request, check idempotency.Check) {
	if s.cfg.Observe != nil {
		s.cfg.Observe(r, routeOf(r), check)
	}
}

func routeOf(r *http.Request) string { return chi.RouteContext(r.Context()).RoutePattern() }
