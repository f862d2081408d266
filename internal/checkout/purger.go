package checkout

import (
	"context"
	"time"
)

const (
	// purgeInterval is short against the hours for which a reply is kept.
	purgeInterval = time.Minute

	// purgeBatch keeps a deletion well below a second.
	purgeBatch = 500
)

// KeyStore is what a [Purger] needs of a store.
type KeyStore interface {
	// PurgeKeys forgets at most limit idempotency keys that are finished and have
	// expired by the store's clock. It MUST NOT forget a key in progress, however
	// old it is. It gives the number of keys.
	PurgeKeys(ctx context.Context, limit int) (int, error)
}

// Purger forgets idempotency keys whose reply was kept for as long as promised.
// After that a key may be used anew. Every replica runs one; it is safe for
// concurrent use.
type Purger struct {
	periodic
	store KeyStore
}

// NewPurger makes a purger.
func NewPurger(store KeyStore, schedule Schedule) *Purger {
	p := &Purger{store: store}
	p.periodic = periodic{name: "purger", schedule: schedule.or(purgeInterval, purgeBatch), pass: p.RunOnce}
	return p
}

// RunOnce purges a batch of keys and gives their number.
func (p *Purger) RunOnce(ctx context.Context) (int, error) {
	return p.store.PurgeKeys(ctx, p.schedule.Batch)
}
