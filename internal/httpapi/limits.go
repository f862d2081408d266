package httpapi

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	"github.com/go-chi/chi/v5/middleware"
	"github.com/go-chi/httprate"

	"github.com/oncepay/oncepay/idempotency"
)

const (
	// maxBody, in bytes, is ten times the largest sensible order.
	maxBody = 64 << 10
	// rateWindow is short, so that a client that was stopped is let in again soon.
	rateWindow = time.Second
	// strangersPerSecond is how many requests with unknown API keys a replica answers one address,
	// and logs: more than a client sends by mistake.
	strangersPerSecond = 100
)

// limitBody refuses a body that says it is too large, and bounds the reading of all others. The
// connection is closed after a refusal: to keep it, net/http would first read what the client has
// not sent yet, for as long as a body may take.
func (s *Server) limitBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > maxBody {
			w.Header().Set("Connection", "close")
			s.fail(w, r, bodyTooLarge(maxBody))
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		next.ServeHTTP(w, r)
	})
}

// limitTime bounds everything that runs without a key, also where the key is optional, and with a
// key what comes before the handler. With a key, the handler has a deadline of its own, set by the
// idempotency stage.
func (s *Server) limitTime(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limit := s.cfg.OrderDeadline
		if policy := s.policyOf(r); policy != nil && r.Header.Get(idempotency.HeaderKey) != "" {
			limit = beforeHandler(policy)
		}
		ctx, cancel := context.WithTimeout(r.Context(), limit)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// limitRate bounds the requests of an account at this replica.
func (s *Server) limitRate() func(http.Handler) http.Handler {
	byAccount := func(r *http.Request) (string, error) { return exchangeOf(r.Context()).account.String(), nil }
	return httprate.LimitBy(s.cfg.RateLimit, rateWindow, byAccount,
		httprate.WithResponseHeaders(httprate.ResponseHeaders{}), // Retry-After says what is needed
		httprate.WithErrorHandler(s.fail),
		httprate.WithLimitHandler(func(w http.ResponseWriter, r *http.Request) { s.fail(w, r, errRateLimited) }))
}

// refuse answers who is not let in. Of an address that sends many such requests only the first ones
// of each second are logged, and its connections are closed: the log and the processors are for
// others.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if problemOf(err).status == http.StatusUnauthorized && s.strangers.OnLimit(w, r, networkOf(middleware.GetClientIP(r.Context()))) {
		exchangeOf(r.Context()).quiet = true
		w.Header().Set("Connection", "close")
		err = errStrangers
	}
	s.fail(w, r, err)
}

// newStrangers counts the requests with unknown API keys of each address.
func newStrangers() *httprate.RateLimiter {
	return httprate.NewRateLimiter(strangersPerSecond, rateWindow, httprate.WithResponseHeaders(httprate.ResponseHeaders{}))
}

// networkOf is an address, or the IPv6 network of which one client has all addresses (RFC 6177,
// section 2).
func networkOf(address string) string {
	if parsed, err := netip.ParseAddr(address); err == nil && parsed.Is6() && !parsed.Is4In6() {
		network, _ := parsed.WithZone("").Prefix(64)
		return network.String()
	}
	return address
}
