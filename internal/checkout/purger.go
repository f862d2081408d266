package checkout

import (
	"cmp"
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

	// DefaultEventsKept is time to notice that a broker lost events, over a holiday.
	DefaultEventsKept = 7 * 24 * time.Hour

	// inboxMargin is for how long an event may stay with the broker after it had its
	// effect: the consumer died before saying so, and none was there since.
	inboxMargin = 24 * time.Hour

	// purgeBatch keeps a deletion well below a second.
	purgeBatch = 500
)

// PurgeStore is what a [Purger] needs of a store. Ages are by the store's clock.
// Its methods delete at most limit of what they speak of, without waiting for
// what somebody has locked, and give the number.
type PurgeStore interface {
	// PurgeKeys forgets idempotency keys that are finished and have expired. It MUST
	// NOT forget a key in progress, however old it is.
	PurgeKeys(ctx context.Context, limit int) (int, error)
	// PurgeNotices forgets events of the provider's that were recorded longer ago than
	// the age, except those that conflicted.
	PurgeNotices(ctx context.Context, age time.Duration, limit int) (int, error)
	// PurgeEvents forgets events of ours that were last published longer ago than the
	// age. It MUST NOT forget one that is to be published, or that was refused.
	PurgeEvents(ctx context.Context, age time.Duration, limit int) (int, error)
	// PurgeInbox forgets that events had their effect longer ago than the age. It MUST
	// NOT do so while the event may be published again.
	PurgeInbox(ctx context.Context, age time.Duration, limit int) (int, error)
}

// PurgerOptions say when a purger works, and what it leaves. What is zero has a
// default.
type PurgerOptions struct {
	Schedule

	// EventsKept is for how long published events can be published again.
	EventsKept time.Duration
}

// Purger forgets idempotency keys whose reply was kept for as long as promised.
// After that a key may be used anew. It also forgets old notices, and events that
// had their effect. Every replica runs one; it is safe for concurrent use.
type Purger struct {
	periodic
	store      PurgeStore
	eventsKept time.Duration
}

// NewPurger makes a purger.
func NewPurger(store PurgeStore, options PurgerOptions) *Purger {
	p := &Purger{store: store, eventsKept: cmp.Or(options.EventsKept, DefaultEventsKept)}
	p.periodic = periodic{name: "purger", schedule: options.Schedule.or(purgeInterval, purgeBatch), pass: p.RunOnce}
	return p
}

// RunOnce purges a batch of each kind, and gives the number of all.
func (p *Purger) RunOnce(ctx context.Context) (int, error) {
	keys, keysErr := p.store.PurgeKeys(ctx, p.schedule.Batch)
	notices, noticesErr := p.store.PurgeNotices(ctx, noticesKept, p.schedule.Batch)
	events, eventsErr := p.store.PurgeEvents(ctx, p.eventsKept, p.schedule.Batch)
	inbox, inboxErr := p.store.PurgeInbox(ctx, p.eventsKept+inboxMargin, p.schedule.Batch)
	return keys + notices + events + inbox, errors.Join(keysErr, noticesErr, eventsErr, inboxErr)
}
