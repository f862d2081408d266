package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/oncepay/oncepay/idempotency/authority/arrival"
	"github.com/oncepay/oncepay/internal/cardnumber"
)

// clientIP finds the client behind the trusted proxies: the peer of the connection, unless trusted
// proxies name another one. It is used only in logs.
func (s *Server) clientIP() chi.Middlewares {
	all := chi.Middlewares{middleware.ClientIPFromRemoteAddr}
	if len(s.cfg.TrustedProxies) == 0 {
		return all
	}
	prefixes := make([]string, len(s.cfg.TrustedProxies))
	for i, prefix := range s.cfg.TrustedProxies {
		prefixes[i] = prefix.String()
	}
	// It leaves the peer where every address is trusted, as on one machine.
	return append(all, middleware.ClientIPFromXFF(prefixes...))
}

// accessLog writes a line per request: no bodies, no queries, no keys.
func (s *Server) accessLog(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		out := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
		defer func() { s.logAccess(r, out, time.Since(began)) }()
		next.ServeHTTP(out, r)
	})
}

// statusClosed is how nginx counts a request whose client left before its answer.
const statusClosed = 499

// seenStatus keeps a failure that nobody saw, and that its client may have caused, out of the
// figures of failures.
func seenStatus(ctx context.Context, status int) int {
	if status >= http.StatusInternalServerError && arrival.IsAbandoned(ctx) {
		return statusClosed
	}
	return status
}

func (s *Server) logAccess(r *http.Request, out middleware.WrapResponseWriter, took time.Duration) {
	ctx, route := r.Context(), chi.RouteContext(r.Context()).RoutePattern()
	if s.cfg.ObserveRequest != nil {
		s.cfg.ObserveRequest(r, route, seenStatus(ctx, out.Status()), took)
	}
	if exchangeOf(ctx).quiet {
		return
	}
	path := r.URL.Path
	switch {
	case route == keyRoute:
		path = route
	case cardnumber.Contains(path):
		path = "(not logged: it contains a card number)"
	}
	x := exchangeOf(ctx)
	s.log.LogAttrs(ctx, slog.LevelInfo, "request", slog.String("event", "http_request"),
		slog.String("request_id", x.requestID), slog.String("method", r.Method), slog.String("path", path),
		slog.String("route", route), slog.Int("status", out.Status()), slog.Int("bytes", out.BytesWritten()),
		slog.Float64("duration_ms", float64(took.Microseconds())/1000),
		slog.String("client_ip", middleware.GetClientIP(ctx)), slog.String("account", x.account.String()))
}
