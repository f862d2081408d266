// Package purge deletes what has been kept for long enough: idempotency keys, provider events, and
// events in the outbox and the inbox.
package purge

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/oncepay/oncepay/internal/background"
)

const (
	// purgeInterval is short against the hours for which an answer is kept.
	purgeInterval = time.Minute

	// providerEventsKept is longer than any provider repeats an event, or answers a query about
	// one.
	providerEventsKept = 90 * 24 * time.Hour

	// DefaultEventsKept is for how long events can be published again for consumers outside this
	// service. It leaves them time to notice, over a holiday, that they lost some.
	DefaultEventsKept = 7 * 24 * time.Hour

	// inboxMargin is far longer than it takes to apply a dead letter: a second statement with the
	// same event must still find it in the inbox.
	inboxMargin = time.Minute

	// purgeBatch keeps a deletion at a few milliseconds, and purgeRest leaves the database to
	// others for most of the time: nobody waits for a deletion. Two replicas still delete several
	// thousand keys a second.
	purgeBatch, purgeRest = 200, 9
)

// Store is what a [Purger] needs of a store. Ages are by the store's clock. Its methods delete at
// most limit rows, skip locked rows, and return the number of deleted rows.
type Store interface {
	// PurgeKeys deletes idempotency keys whose time is up by the store's clock and by this
	// process's: a jump of one of them MUST NOT delete what is still needed. Of those that moved
	// money and must be remembered for longer it deletes only the answer. It MUST NOT touch a key
	// in progress, however old it is.
	PurgeKeys(ctx context.Context, limit int) (int, error)
	// PurgeProviderEvents deletes provider events that were recorded longer ago than the age,
	// except those that conflicted.
	PurgeProviderEvents(ctx context.Context, age time.Duration, limit int) (int, error)
	// PurgeEvents prunes the outbox: it deletes events that happened longer ago than the age. It
	// MUST NOT delete an event that some consumer group has not handled, or has refused.
	PurgeEvents(ctx context.Context, age time.Duration, limit int) (int, error)
	// PurgeInbox deletes what a consumer group handled longer ago than the age. It MUST NOT delete
	// what lies after the group's cursor.
	PurgeInbox(ctx context.Context, age time.Duration, limit int) (int, error)
}

// Options say when a purger works, and what it leaves. Zero values have defaults.
type Options struct {
	background.Schedule

	// EventsKept is for how long events are kept that every consumer group has handled.
	EventsKept time.Duration
}

// Purger deletes idempotency keys whose answer was kept for as long as promised. After that a key
// may be used anew. It also deletes old provider events, and events that had their effect. Every
// replica runs one; it is safe for concurrent use.
type Purger struct {
	*background.Periodic
	store      Store
	batch      int
	eventsKept time.Duration
}

// New returns a purger.
func New(store Store, options Options) *Purger {
	schedule := options.Schedule.Or(purgeInterval, purgeBatch)
	schedule.Rest = cmp.Or(schedule.Rest, purgeRest)
	p := &Purger{store: store, batch: schedule.Batch, eventsKept: cmp.Or(options.EventsKept, DefaultEventsKept)}
	p.Periodic = background.NewPeriodic("purger", schedule, p.RunOnce)
	return p
}

// RunOnce purges a batch of each kind, and returns how many rows it deleted in all.
func (p *Purger) RunOnce(ctx context.Context) (int, error) {
	keys, keysErr := p.store.PurgeKeys(ctx, p.batch)
	provider, providerErr := p.store.PurgeProviderEvents(ctx, providerEventsKept, p.batch)
	events, eventsErr := p.store.PurgeEvents(ctx, p.eventsKept, p.batch)
	inbox, inboxErr := p.store.PurgeInbox(ctx, p.eventsKept+inboxMargin, p.batch)
	return keys + provider + events + inbox, errors.Join(keysErr, providerErr, eventsErr, inboxErr)
}
