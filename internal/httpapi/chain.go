package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/go-chi/httprate"
	"github.com/google/uuid"

	"github.com/oncepay/oncepay/idempotency"
)

const (
	// maxBody, in bytes, is ten times the largest sensible order.
	maxBody = 64 << 10
	// rateWindow is short, so that a client that was stopped is let in again soon.
	rateWindow = time.Second
)

// exchange is what the stages of one request share. Only the goroutine that serves the request uses
// it.
type exchange struct {
	requestID string
	account   uuid.UUID // of the API key; zero until authenticated
	// attemptedAt is when this client attempt began; see timeAttempt.
	attemptedAt time.Time
	quiet       bool // one of many that are refused: it is counted, and not logged
}

type exchangeKey struct{}

// exchangeOf returns the exchange that ctx belongs to, or an empty one.
func exchangeOf(ctx context.Context) *exchange {
	if x, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		return x
	}
	return &exchange{}
}

// RequestID returns the ID of the request that ctx belongs to, or "".
func RequestID(ctx context.Context) string { return exchangeOf(ctx).requestID }

// maxRequestID is how long a client's request ID may be.
const maxRequestID = 64

// isSane reports whether a client's request ID may be taken into logs: letters, digits and . _ : -
func isSane(id string) bool {
	for i := range len(id) {
		switch c := id[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', isDigit(c), c == '.', c == '_', c == ':', c == '-':
		default:
			return false
		}
	}
	return id != "" && len(id) <= maxRequestID && !containsCardNumber(id)
}

// identify sets the request's ID, the client's own if it is sane, and the headers that all answers
// have. None of them is kept for replays.
func (s *Server) identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get("X-Request-ID")
		if !isSane(id) {
			id = uuid.NewString()
		}
		w.Header().Set("X-Request-ID", id)
		if s.cfg.Replica != "" {
			w.Header().Set("X-Served-By", s.cfg.Replica)
		}
		if strings.HasPrefix(r.URL.Path, basePath+"/") { // answers are an account's, and no documents
			w.Header().Set("Cache-Control", "no-store")
			w.Header().Set("X-Content-Type-Options", "nosniff")
		}
		ctx := context.WithValue(r.Context(), exchangeKey{}, &exchange{requestID: id})
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

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
	if status >= http.StatusInternalServerError && isClosed(ctx) {
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
	case containsCardNumber(path):
		path = "(not logged: it contains a card number)"
	}
	x := exchangeOf(ctx)
	s.log.LogAttrs(ctx, slog.LevelInfo, "request", slog.String("event", "http_request"),
		slog.String("request_id", x.requestID), slog.String("method", r.Method), slog.String("path", path),
		slog.String("route", route), slog.Int("status", out.Status()), slog.Int("bytes", out.BytesWritten()),
		slog.Float64("duration_ms", float64(took.Microseconds())/1000),
		slog.String("client_ip", middleware.GetClientIP(ctx)), slog.String("account", x.account.String()))
}

// recover turns a panic into a 500. The idempotency stage has released the key by then.
// [http.ErrAbortHandler] passes: it asks for the connection to break.
func (s *Server) recover(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			reason := recover()
			if reason == nil {
				return
			}
			err, _ := reason.(error)
			out, wrapped := w.(middleware.WrapResponseWriter)
			if errors.Is(err, http.ErrAbortHandler) || (wrapped && out.Status() != 0) {
				panic(reason) // net/http breaks the connection, so that no half answer looks whole
			}
			s.fail(w, r, fmt.Errorf("panic: %v\n%s", reason, debug.Stack()))
		}()
		next.ServeHTTP(w, r)
	})
}

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
