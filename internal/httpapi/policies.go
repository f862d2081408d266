package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/oncepay/oncepay/idempotency"
)

// The longest waits that a client may ask for with Prefer: wait=<seconds>, instead of a 409 at
// once.
const (
	// maxMoneyWait covers most slow providers.
	maxMoneyWait = 30 * time.Second
	// maxChangeWait is as long as the handler's deadline, and far above what a change takes.
	maxChangeWait = 5 * time.Second
)

// preparation bounds what comes before the wait for another request: authenticating and validating
// take milliseconds.
const preparation = 2 * time.Second

// beforeHandler bounds what comes before the handler of a route with a key.
func beforeHandler(p *idempotency.Policy) time.Duration { return preparation + p.MaxWait }

// keyedRoutes is the policy of each route that takes a key. Routes that move money fail closed:
// without the store two attempts could ask the provider at the same time, and we should not depend
// on the provider's own idempotency. The others fail open, because the authority can decide there
// by itself. It also decides where a record was damaged.
func keyedRoutes(cfg Config) map[string]*idempotency.Policy {
	money := idempotency.Policy{
		Required: true, TTL: cfg.PaymentTTL, Lease: cfg.Lease, Deadline: cfg.PaymentDeadline,
		MaxWait: maxMoneyWait, FailureMode: idempotency.FailClosed, Authority: true,
		ExcludedFields: []string{"client_timestamp", "request_nonce"},
	}
	change := idempotency.Policy{
		Required: true, TTL: cfg.OrderTTL, Lease: cfg.Lease, Deadline: cfg.OrderDeadline,
		MaxWait: maxChangeWait, FailureMode: idempotency.FailOpen,
	}
	optional := change
	optional.Required = false
	conditional := change
	conditional.Headers = []string{"If-Match", "If-None-Match"}
	optionalConditional := conditional
	optionalConditional.Required = false
	return map[string]*idempotency.Policy{
		"POST /v1/orders/{order_id}/payments":      &money,
		"POST /v1/payments/{payment_id}/refunds":   &money,
		"POST /v1/customers/{customer_id}/top-ups": &money,
		"POST /v1/orders":                          &change,
		"PATCH /v1/orders/{order_id}":              &change,
		"POST /v1/customers":                       &change,
		"PATCH /v1/customers/{customer_id}":        &optional,
		"PATCH /v1/products/{sku}":                 &conditional,
		"PUT /v1/products/{sku}":                   &optionalConditional,
	}
}

// idempotent is the idempotency stage. An account is the scope of its keys.
func (s *Server) idempotent() *idempotency.Middleware {
	traceParent := s.cfg.TraceParent
	if traceParent == nil {
		traceParent = func(context.Context) string { return "" }
	}
	return idempotency.New(s.cfg.Store, s.policyOf,
		idempotency.WithTraceParent(traceParent),
		idempotency.WithHeaderAllowList("Content-Type", "ETag", "Location"), // all that handlers set
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

// Budgets returns, for each route that takes a key, the longest time from the end of a request to
// its answer while the stores answer: its preparation, the wait that the client may prefer, and
// then the handler's deadline. Whatever is in front of a replica must wait for longer. Stores that
// do not answer add some seconds, and the client then gets the proxy's answer.
func Budgets(cfg Config) map[string]time.Duration {
	budgets := map[string]time.Duration{}
	for route, policy := range keyedRoutes(cfg) {
		budgets[route] = beforeHandler(policy) + policy.Deadline
	}
	return budgets
}

// MaxBudget is the longest budget of a replica, also of the routes that take no key.
func MaxBudget(cfg Config) time.Duration {
	longest := cfg.OrderDeadline
	for _, budget := range Budgets(cfg) {
		longest = max(longest, budget)
	}
	return longest
}

// policyOf is the policy of a request's route, or nil if the route takes no key.
func (s *Server) policyOf(r *http.Request) *idempotency.Policy {
	return s.policies[r.Method+" "+routeOf(r)]
}

func routeOf(r *http.Request) string { return chi.RouteContext(r.Context()).RoutePattern() }
