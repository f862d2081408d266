package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/oncepay/oncepay/idempotency/authority/arrival"
	"github.com/oncepay/oncepay/internal/checkout"
)

var (
	errAbandoned = problem{status: http.StatusServiceUnavailable, code: "request_abandoned", retryAfter: checkout.RetryHint,
		detail: "The client closed the connection before the request was executed. Nothing was done."}
	errTooOld = problem{status: http.StatusServiceUnavailable, code: "request_too_old", retryAfter: checkout.RetryHint,
		detail: "The request waited too long before it was executed. Nothing was done. Send it again."}
)

// noteArrival notes when the request arrived: see package arrival.
func (s *Server) noteArrival(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		exchangeOf(r.Context()).arrivedAt = arrival.Time(r, s.cfg.TrustedProxies)
		next.ServeHTTP(w, r)
	})
}

// refuseStale stops a change that no client waits for any more, before it claims its key. Without a
// key, nothing else stops an older copy.
func (s *Server) refuseStale(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case s.policyOf(r) == nil:
		case time.Since(exchangeOf(r.Context()).arrivedAt) > checkout.MaxRequestAge:
			s.reject(w, r, errTooOld)
			return
		case errors.Is(r.Context().Err(), context.Canceled) || arrival.IsAbandoned(r.Context()):
			s.fail(w, r, errAbandoned)
			return
		}
		next.ServeHTTP(w, r)
	})
}
