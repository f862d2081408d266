package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/go-chi/httprate"

	"github.com/oncepay/oncepay/idempotency"
)

const (
	// maxBody, in bytes, is ten times the largest sensible order.
	maxBody = 64 << 10
	// rateWindow is short, so that a client that was stopped is let in again soon.
	rateWindow = time.Second
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
