package httpapi

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/oncepay/oncepay/internal/cardnumber"
)

// exchange is what the stages of one request share. Only the goroutine that serves the request uses
// it.
type exchange struct {
	requestID string
	account   uuid.UUID // of the API key; zero until authenticated
	// arrivedAt is when this client attempt arrived; see noteArrival.
	arrivedAt time.Time
	quiet     bool // one of many that are refused: it is counted, and not logged
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

// separators of digits in an ID, in which a card number would be logged.
var separators = strings.NewReplacer(".", "-", "_", "-", ":", "-")

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
	return id != "" && len(id) <= maxRequestID && !cardnumber.Contains(separators.Replace(id))
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
