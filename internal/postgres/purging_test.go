package postgres

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/checkout"
)

// use finishes a key whose reply is kept until so long from now.
func (b *bundle) use(key string, until time.Duration) {
	b.t.Helper()
	_, err := b.PlaceOrder(b.ctx, b.call(key, 1), wants(b.customer().ID, "mug-white", 1), render)
	require.NoError(b.t, err)
	b.keepUntil(key, until)
}

func (b *bundle) keepUntil(key string, until time.Duration) {
	b.t.Helper()
	_, err := b.pool.Exec(b.ctx, "UPDATE idempotency_keys SET expires_at = now() + $2::interval WHERE key = $1", key, until)
	require.NoError(b.t, err)
}

func (b *bundle) purge(limit, purged int) {
	b.t.Helper()
	n, err := b.PurgeKeys(b.ctx, limit)
	require.NoError(b.t, err)
	require.Equal(b.t, purged, n)
}

func TestAFinishedKeyIsForgottenWhenItExpires(t *testing.T) {
	t.Parallel()
	b := setup(t)
	customer := b.customer().ID
	wanted := wants(customer, "limited-print", 11)
	call := b.call("failed", wanted)
	refused, err := b.PlaceOrder(b.ctx, call, wanted, render)
	requireRefused(t, "out_of_stock", refused, err)
	b.keepUntil("failed", -time.Second)
	b.use("completed", -time.Second)
	b.use("fresh", time.Minute)
	c := b.beginCardPayment("in progress")
	b.keepUntil("in progress", -72*time.Hour)

	again, err := b.PlaceOrder(b.ctx, call, wanted, render)
	require.NoError(t, err)
	require.True(t, again.Replayed, "it is kept until it is purged")
	purger := checkout.NewPurger(b.Store, checkout.PurgerOptions{})
	n, err := purger.RunOnce(b.ctx)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Equal(t, 1, b.count("idempotency_keys WHERE key = 'fresh'"))
	require.EqualValues(t, 2, b.resume(c).Attempt, "a key in progress is never forgotten")

	fewer := wants(customer, "limited-print", 10)
	reply, err := b.PlaceOrder(b.ctx, b.call("failed", fewer), fewer, render) // the key is used anew
	require.False(t, reply.Replayed)
	require.Len(t, decode[checkout.Order](t, reply, err).Items, 1)
	b.requireBooks()
}

func TestKeysArePurgedInSmallBatches(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 20 {
		b.use(newID().String(), -time.Second)
	}
	sum := 0
	for _, n := range inParallel(4, func(int) int {
		n, err := b.PurgeKeys(b.ctx, 3)
		require.NoError(t, err)
		require.LessOrEqual(t, n, 3)
		return n
	}) {
		sum += n
	}
	require.Equal(t, 20-sum, b.count("idempotency_keys"))
	purger := checkout.NewPurger(b.Store, checkout.PurgerOptions{Schedule: checkout.Schedule{Interval: 5 * time.Millisecond, Batch: 3}})
	purger.Start(b.ctx)
	defer purger.Stop()
	require.Eventually(t, func() bool { return b.count("idempotency_keys") == 0 }, testTimeout, 5*time.Millisecond)
}

func TestPurgingPassesOverWhatIsLocked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.use("locked", -time.Second)
	b.use("free", -time.Second)
	release := b.hold("SELECT FROM idempotency_keys WHERE key = 'locked' FOR NO KEY UPDATE")
	b.purge(10, 1)
	release()
	b.purge(10, 1)
}

const day = 24 * time.Hour

// aged makes or changes a row, to what it would be if it were old.
func (b *bundle) aged(sql string, args ...any) {
	b.t.Helper()
	tag, err := b.pool.Exec(b.ctx, sql, args...)
	require.NoError(b.t, err)
	require.EqualValues(b.t, 1, tag.RowsAffected())
}

// event writes one that is old, and says when it was published.
func (b *bundle) event(published time.Duration) (id uuid.UUID) {
	b.t.Helper()
	id = newID()
	b.aged(`INSERT INTO outbox (event_id, account_id, type, aggregate, subject, data, created_at, published_at)
		VALUES ($1, $2, 'order.placed', 'order', $1, '{}', now() - interval '100 days', now() - $3::interval)`, id, b.account, published)
	return id
}

// consumed has an event have its effect.
func (b *bundle) consumed(event uuid.UUID, ago time.Duration) {
	b.t.Helper()
	b.aged("INSERT INTO inbox (consumer, event_id, created_at) VALUES ('test', $1, now() - $2::interval)", event, ago)
}

func TestPublishedEventsAreForgottenInTime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.event(8 * day)
	fresh, waiting, dead, replayed := b.event(6*day), b.event(0), b.event(0), b.event(8*day)
	b.aged("UPDATE outbox SET published_at = NULL WHERE event_id = $1", waiting)
	b.aged("UPDATE outbox SET published_at = NULL, dead_at = now() - interval '99 days' WHERE event_id = $1", dead)
	b.aged("UPDATE outbox SET published_at = now() WHERE event_id = $1", replayed)
	for _, want := range []int{1, 0} {
		n, err := b.PurgeEvents(b.ctx, 7*day, 10)
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
	require.Equal(t, 4, b.count("outbox"))
	for _, event := range []uuid.UUID{fresh, waiting, dead, replayed} {
		require.True(t, value[bool](b, "SELECT EXISTS (SELECT FROM outbox WHERE event_id = $1)", event))
	}
}

// TestTheInboxOutlivesTheOutbox is about events that come again: as long as one
// can, its effect must be remembered.
func TestTheInboxOutlivesTheOutbox(t *testing.T) {
	t.Parallel()
	b := setup(t)
	replayable, forgotten := b.event(6*day), b.event(8*day)
	b.consumed(replayable, 100*day)
	b.consumed(forgotten, 100*day)
	b.consumed(newID(), 9*day)
	b.consumed(newID(), 7*day) // the broker may still have it
	purge := func(want int) {
		t.Helper()
		n, err := b.PurgeInbox(b.ctx, 8*day, 10)
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
	purge(1)
	n, err := b.PurgeEvents(b.ctx, 7*day, 10)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	purge(1)
	purge(0)
	require.Equal(t, 2, b.count("inbox"))
	require.True(t, value[bool](b, "SELECT EXISTS (SELECT FROM inbox WHERE event_id = $1)", replayable))
}

func TestPurgersShareEventsInSmallBatches(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 20 {
		b.consumed(b.event(8*day), 9*day)
	}
	release := b.hold("SELECT FROM outbox ORDER BY published_at LIMIT 1 FOR NO KEY UPDATE")
	for kind, batch := range map[string]func() (int, error){
		"outbox": func() (int, error) { return b.PurgeEvents(b.ctx, 7*day, 3) },
		"inbox":  func() (int, error) { return b.PurgeInbox(b.ctx, 8*day, 3) },
	} {
		before := b.count(kind)
		sum := 0
		for _, n := range inParallel(4, func(int) int {
			n, err := batch()
			require.NoError(t, err)
			require.LessOrEqual(t, n, 3)
			return n
		}) {
			sum += n
		}
		require.Equal(t, before-sum, b.count(kind))
	}
	release()
	purger := checkout.NewPurger(b.Store, checkout.PurgerOptions{Schedule: checkout.Schedule{Interval: 5 * time.Millisecond, Batch: 3}})
	purger.Start(b.ctx)
	defer purger.Stop()
	require.Eventually(t, func() bool { return b.count("outbox") == 0 && b.count("inbox") == 0 }, testTimeout, 5*time.Millisecond)
}
