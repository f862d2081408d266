package httpapi

import (
	"context"
	"net/http"

	"github.com/oncepay/oncepay/idempotency"
)

// maxBody, in bytes, is ten times the largest sensible order.
const maxBody = 64 << 10

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
