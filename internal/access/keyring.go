package access

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/singleflight"

	"github.com/oncepay/oncepay/internal/background"
)

const (
	// refreshInterval finds a new key within a second or two.
	refreshInterval = time.Second
	// staleAfter is the age at which a reading says nothing of unknown keys. It is longer than the
	// longest pause between two readings.
	staleAfter = 3 * refreshInterval
	// refreshTimeout bounds a whole refresh. It is far above what reading all keys takes: one that
	// does not fit is begun again without end, and meanwhile every request fails. The store bounds
	// each query, so a database that is away is noticed earlier.
	refreshTimeout = time.Minute
	// pageSize bounds what one query returns, to half a megabyte.
	pageSize = 5_000
)

// Ring has all API keys that may be used. It looks for changes in the background, which is one row
// to read, and reads all keys when there was one. 100,000 keys take 9 MiB, and as much again while
// they are read (BenchmarkRing_Reads). It is safe for concurrent use.
type Ring struct {
	*background.Periodic
	store  Store
	flight singleflight.Group
	keys   atomic.Pointer[keys]
}

// keys are those of one moment.
type keys struct {
	version uuid.UUID
	asOf    time.Time // when the version was asked for
	failed  bool      // the latest reading failed, so these are of an earlier one
	byHash  map[Hash]Key
}

// NewRing returns a ring without keys. Refresh reads them.
func NewRing(store Store, schedule background.Schedule) *Ring {
	r := &Ring{store: store}
	r.keys.Store(&keys{})
	r.Periodic = background.NewPeriodic("api keys", schedule.Or(refreshInterval, pageSize), func(ctx context.Context) (int, error) {
		return 0, r.Refresh(ctx) // there is never more
	})
	return r
}

// Find returns what an API key opens, or [ErrUnknown]. A key that is known is answered as of maxAge
// ago at most, for which the store may have to be asked; its error is then returned. An unknown one
// never asks: a stranger costs nothing. While the store is away it gets [ErrStale].
func (r *Ring) Find(ctx context.Context, hash Hash, maxAge time.Duration) (Key, error) {
	now, at := time.Now(), r.keys.Load()
	key, known := at.byHash[hash]
	// Twice at most: a refresh that was under way may have begun too early, the next one has not.
	for known && now.Sub(at.asOf) > maxAge {
		if err := r.Refresh(ctx); err != nil {
			return Key{}, err
		}
		at = r.keys.Load()
		key, known = at.byHash[hash]
	}
	switch {
	case !known && (at.failed || now.Sub(at.asOf) > max(maxAge, staleAfter)):
		return Key{}, ErrStale
	case !known || key.isExpired(now):
		return Key{}, ErrUnknown
	}
	return key, nil
}

// Len returns how many keys there are.
func (r *Ring) Len() int { return len(r.keys.Load().byHash) }

// Refresh looks for changes. Many callers at a time ask the store once. A caller whose context ends
// returns its error, and the refresh goes on for the others.
func (r *Ring) Refresh(ctx context.Context) error {
	done := r.flight.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refreshTimeout)
		defer cancel()
		return nil, r.refresh(ctx)
	})
	select {
	case result := <-done:
		return result.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *Ring) refresh(ctx context.Context) error {
	now, err := r.read(ctx, *r.keys.Load())
	r.keys.Store(&now)
	return err
}

// read asks for the version first: what changes while the keys are read has yet another one. If it
// fails, it returns what is known.
func (r *Ring) read(ctx context.Context, known keys) (keys, error) {
	began := time.Now()
	known.failed = true
	version, err := r.store.APIKeysVersion(ctx)
	if err != nil {
		return known, err
	}
	byHash := known.byHash
	if version != known.version {
		if byHash, err = r.readAll(ctx); err != nil {
			return known, err
		}
	}
	return keys{version: version, asOf: began, byHash: byHash}, nil
}

func (r *Ring) readAll(ctx context.Context) (map[Hash]Key, error) {
	all := make(map[Hash]Key, r.Len())
	for after := (Hash{}); ; {
		page, err := r.store.APIKeys(ctx, after, pageSize)
		if err != nil {
			return nil, err
		}
		for _, k := range page {
			if !k.Ended {
				all[k.Hash] = k.Key
			}
			after = k.Hash
		}
		if len(page) < pageSize {
			return all, nil
		}
	}
}
