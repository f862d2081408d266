package httpapi

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/singleflight"

	"github.com/oncepay/oncepay/internal/checkout"
)

const (
	// lookupTimeout bounds one look-up of an API key, which many requests may be waiting for: while
	// the database is away they should get an error soon.
	lookupTimeout = 5 * time.Second
	// maxCachedKeys bounds the memory of the cache to about a megabyte.
	maxCachedKeys = 10_000
)

// admit checks provider events by their signature, and everything else by the API key.
func (s *Server) admit(known *accounts) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		byKey, bySignature := s.authenticate(known)(next), s.verify(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if routeOf(r) == webhookRoute {
				bySignature.ServeHTTP(w, r)
				return
			}
			byKey.ServeHTTP(w, r)
		})
	}
}

// authenticate passes requests with a valid API key on. A revoked one is refused within
// AuthCacheTTL, even if its idempotency key has an answer.
func (s *Server) authenticate(known *accounts) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			key, ok := bearerToken(r.Header)
			if !ok {
				s.fail(w, r, errUnauthorized)
				return
			}
			account, err := known.of(r.Context(), key)
			if err != nil {
				if errors.Is(err, checkout.ErrUnauthorized) {
					w.Header().Set("WWW-Authenticate", `Bearer realm="oncepay", error="invalid_token"`)
				}
				s.fail(w, r, err)
				return
			}
			exchangeOf(r.Context()).account = account
			next.ServeHTTP(w, r)
		})
	}
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

type keyHash = [sha256.Size]byte

// accounts caches the accounts of API keys for a short time. Unknown keys are not cached: there is
// no limit to them, and any of them may be created at any moment.
type accounts struct {
	lookup func(context.Context, [32]byte) (checkout.Account, error)
	ttl    time.Duration
	flight singleflight.Group // many requests of one key ask the database once

	mu    sync.Mutex
	known map[keyHash]knownAccount
}

type knownAccount struct {
	id    uuid.UUID
	until time.Time
}

func newAccounts(lookup func(context.Context, [32]byte) (checkout.Account, error), ttl time.Duration) *accounts {
	return &accounts{lookup: lookup, ttl: ttl, known: map[keyHash]knownAccount{}}
}

// of returns the account of an API key, checkout.ErrUnauthorized, or an error of the database. Only
// the key's hash is kept or asked for.
func (a *accounts) of(ctx context.Context, key string) (uuid.UUID, error) {
	hash := sha256.Sum256([]byte(key))
	if id, ok := a.cached(hash); ok {
		return id, nil
	}
	found, err, _ := a.flight.Do(string(hash[:]), func() (any, error) {
		// Others wait for this answer, too, so it doesn't end with one client.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTimeout)
		defer cancel()
		asked := time.Now()
		account, err := a.lookup(ctx, hash)
		if err == nil {
			a.remember(hash, knownAccount{account.ID, asked.Add(a.ttl)})
		}
		return account.ID, err
	})
	if err != nil {
		return uuid.Nil, err
	}
	return found.(uuid.UUID), nil
}

func (a *accounts) cached(hash keyHash) (uuid.UUID, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	found, ok := a.known[hash]
	return found.id, ok && time.Now().Before(found.until)
}

// remember makes room by forgetting any one key, which costs that key a look-up and nothing else.
func (a *accounts) remember(hash keyHash, account knownAccount) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.known) >= maxCachedKeys {
		for other := range a.known {
			delete(a.known, other)
			break
		}
	}
	a.known[hash] = account
}
