// Package access knows who may use the API. A replica has all API keys that may be used in memory,
// so that a stranger costs no query.
package access

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/google/uuid"
)

// Hash is what is kept of an API key: its SHA-256. A key is 128 random bits or more, so its hash
// needs no salt, and how long it takes to find one says nothing of the keys.
type Hash = [sha256.Size]byte

// HashOf returns the hash of an API key.
func HashOf(key string) Hash { return sha256.Sum256([]byte(key)) }

// Key is what an API key opens.
type Key struct {
	Account   uuid.UUID
	ReadOnly  bool  // it may only read
	Suspended bool  // its account may do nothing
	expires   int64 // microseconds since 1970, as PostgreSQL keeps it; 0: never
}

// NewKey returns a key that expires then, or never.
func NewKey(account uuid.UUID, readOnly, suspended bool, expires *time.Time) Key {
	k := Key{Account: account, ReadOnly: readOnly, Suspended: suspended}
	if expires != nil {
		k.expires = expires.UnixMicro()
	}
	return k
}

func (k Key) isExpired(now time.Time) bool { return k.expires != 0 && now.UnixMicro() >= k.expires }

// HashedKey is a key with its hash.
type HashedKey struct {
	Hash  Hash
	Ended bool // it is revoked or has expired
	Key
}

// Store keeps the API keys. It bounds the duration of each call. A failed call is worth another
// one.
type Store interface {
	// APIKeysVersion returns a value that each change of a key or an account replaces.
	APIKeysVersion(ctx context.Context) (uuid.UUID, error)
	// APIKeys returns the keys after a hash, in the order of their hashes: limit of them, or fewer
	// at the end. Those that have ended are among them.
	APIKeys(ctx context.Context, after Hash, limit int) ([]HashedKey, error)
}

var (
	// ErrUnknown says that an API key may not be used: it is unknown, revoked or expired.
	ErrUnknown = errors.New("access: unknown API key")
	// ErrStale says that an API key is unknown, and may be new: the keys could not be read lately.
	ErrStale = errors.New("access: unknown API key, and the keys could not be read lately")
)
