package checkout

import (
	"context"
	"errors"
	"time"
)

const (
	// purgeInterval is short against the hours for which a reply is kept.
	purgeInterval = time.Minute

	// noticesKept is longer than any provider repeats an event, or wants to be asked
	// about one.
	noticesKept = 90 * 24 * time.Hour

	// purgeBatch keeps a deletion well below a second.
	purgeBatch = 500
)

// KeyStore is what a [Purger] needs of a store.
type KeyStore interface {
	// PurgeKeys forgets at most limit idempotency keys that are finished and have
	// expired by the store's clock. It MUST NOT forget a key in progress, however
	// old it is. It gives the number of keys.
	PurgeKeys(ctx context.Context, limit int) (int, error)
	// PurgeNotices forgets at most limit events of the provider's that were recorded
	// longer ago than the age, except those that conflicted. It gives their number.
	PurgeNotices(ctx context.Context, age time.Duration, limit int) (int, error)
}

// Purger forgets idempotency keys whose reply was kept for as long as promised.
// After that a key may be used anew. It also forgets old notices. Every replica runs one; it is safe for
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

// RunOnce purges a batch of keys and one of notices, and gives their number.
func (p *Purger) RunOnce(ctx context.Context) (int, error) {
	keys, keysErr := p.store.PurgeKeys(ctx, p.schedule.Batch)
	notices, noticesErr := p.store.PurgeNotices(ctx, noticesKept, p.schedule.Batch)
	return keys + notices, errors.Join(keysErr, noticesErr)
}
