package httpapi

import (
	"errors"
	"net/http"
	"net/netip"
	"time"

	"github.com/go-chi/chi/v5/middleware"
	"github.com/go-chi/httprate"

	"github.com/oncepay/oncepay/internal/access"
)

const (
	// rateWindow is short, so that a client that was stopped is let in again soon.
	rateWindow = time.Second
	// strangersPerSecond is how many requests with unknown API keys a replica answers one address,
	// and logs: more than a client sends by mistake.
	strangersPerSecond = 100
)

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
	unknown := problemOf(err).status == http.StatusUnauthorized || errors.Is(err, access.ErrStale)
	if unknown && s.strangers.OnLimit(w, r, networkOf(middleware.GetClientIP(r.Context()))) {
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
