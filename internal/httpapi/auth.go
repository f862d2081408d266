package httpapi

import (
	"errors"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/oncepay/oncepay/internal/access"
	"github.com/oncepay/oncepay/internal/checkout"
)

// checkCaller checks provider events by their signature, and everything else by the API key.
func (s *Server) checkCaller(next http.Handler) http.Handler {
	byKey, bySignature, byStripe := s.authenticate(next), s.verify(s.checkSignature, next), s.verify(s.checkStripe, next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch routeOf(r) {
		case webhookRoute:
			bySignature.ServeHTTP(w, r)
		case stripeRoute:
			byStripe.ServeHTTP(w, r)
		default:
			byKey.ServeHTTP(w, r)
		}
	})
}

// authenticate passes requests on whose API key may make them. A revoked key is refused within
// AuthCacheTTL, even if its idempotency key has an answer; so are all keys of a suspended account.
func (s *Server) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		account, err := s.accountOf(r)
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		exchangeOf(r.Context()).account = account
		next.ServeHTTP(w, r)
	})
}

func (s *Server) accountOf(r *http.Request) (uuid.UUID, error) {
	token, ok := bearerToken(r.Header)
	if !ok {
		return uuid.Nil, errUnauthorized
	}
	key, err := s.cfg.APIKeys.Find(r.Context(), access.HashOf(token), s.cfg.AuthCacheTTL)
	switch {
	case errors.Is(err, access.ErrUnknown):
		return uuid.Nil, errInvalidToken
	case errors.Is(err, access.ErrStale):
		return uuid.Nil, checkout.Unavailable("look for a new API key", err)
	case err != nil:
		return uuid.Nil, err
	case key.Suspended:
		return uuid.Nil, errSuspended
	case key.ReadOnly && r.Method != http.MethodGet && r.Method != http.MethodHead:
		return uuid.Nil, errReadOnly
	}
	return key.Account, nil
}

// bearerToken reads the Authorization header (RFC 6750, section 2.1), which must have been sent
// once. Only spaces may stand before the token: nginx counts the requests of each key, and must
// read the same one.
func bearerToken(h http.Header) (string, bool) {
	values := h.Values("Authorization")
	if len(values) != 1 {
		return "", false
	}
	scheme, token, found := strings.Cut(values[0], " ")
	token = strings.Trim(token, " ")
	return token, found && token != "" && strings.EqualFold(scheme, "Bearer")
}
