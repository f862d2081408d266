package postgres

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/background"
	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/purge"
)

// use finishes a key whose answer is kept until so long from now.
func (b *bundle) use(key string, until time.Duration) {
	b.t.Helper()
	_, err := b.PlaceOrder(b.ctx, b.call(key, 1), wants(b.customer().ID, "mug-white", 1))
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

func TestPurger_DeletesAFinishedKeyWhenItExpires(t *testing.T) {
	t.Parallel()
	b := setup(t)
	customer := b.customer().ID
	wanted := wants(customer, "limited-print", 11)
	call := b.call("failed", wanted)
	refused, err := b.PlaceOrder(b.ctx, call, wanted)
	requireRefused(t, "out_of_stock", refused, err)
	b.keepUntil("failed", -time.Second)
	b.use("completed", -time.Second)
	b.use("fresh", time.Minute)
	c := b.beginCardPayment("in progress")
	b.keepUntil("in progress", -72*time.Hour)

	purger := purge.New(b.Store, purge.Options{})
	n, err := purger.RunOnce(b.ctx)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Equal(t, 1, b.count("idempotency_keys WHERE key = 'fresh'"))
	require.EqualValues(t, 2, b.resume(c).Call.Claim.Attempt, "a key in progress is never forgotten")

	fewer := wants(customer, "limited-print", 10)
	answer, err := b.PlaceOrder(b.ctx, b.call("failed", fewer), fewer) // the key is used anew
	require.False(t, answer.Replayed)
	require.Len(t, decode[checkout.Order](t, answer, err).Items, 1)
	b.requireBooks()
}

func TestPurger_DeletesKeysInSmallBatches(t *testing.T) {
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
	purger := purge.New(b.Store, purge.Options{Schedule: background.Schedule{Interval: 5 * time.Millisecond, Batch: 3}})
	purger.Start(b.ctx)
	defer purger.Stop()
	require.Eventually(t, func() bool { return b.count("idempotency_keys") == 0 }, testTimeout, 5*time.Millisecond)
}

func TestPurger_SkipsWhatIsLocked(t *testing.T) {
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

// event writes one that happened so long ago, and returns its position.
func (b *bundle) event(ago time.Duration) (position int64) {
	b.t.Helper()
	return value[int64](b, `INSERT INTO outbox (event_id, account_id, type, aggregate, subject, data, created_at)
		VALUES (gen_random_uuid(), $1, 'order.placed', 'order', gen_random_uuid(), '{}', now() - $2::interval) RETURNING id`, b.account, ago)
}

// passed moves the relay's cursor and those of all groups.
func (b *bundle) passed(relay, groups int64) {
	b.t.Helper()
	b.aged("UPDATE outbox_cursor SET position = $1", relay)
	_, err := b.pool.Exec(b.ctx, "UPDATE consumer_cursors SET position = $1, purgeable = $1", groups)
	require.NoError(b.t, err)
}

// consumed has the events up to a position have their effect.
func (b *bundle) consumed(ago time.Duration) {
	b.t.Helper()
	_, err := b.pool.Exec(b.ctx, `INSERT INTO inbox (consumer, position, event_id, created_at)
		SELECT $1, id, event_id, now() - $2::interval FROM outbox ON CONFLICT DO NOTHING`, orderConfirmations.Name, ago)
	require.NoError(b.t, err)
}

func (b *bundle) purgeEvents(want int) {
	b.t.Helper()
	n, err := b.PurgeEvents(b.ctx, 7*day, 10)
	require.NoError(b.t, err)
	require.Equal(b.t, want, n)
}

func TestPurgeEvents_KeepsWhatIsYoungOrNotConsumed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, second, third := b.event(9*day), b.event(8*day), b.event(6*day)
	b.passed(0, third)
	b.purgeEvents(0) // not published
	b.passed(third, 0)
	b.purgeEvents(0) // no group has had it
	b.passed(third, third)
	b.aged("UPDATE consumer_cursors SET position = $1 WHERE consumer = $2", first, orderConfirmations.Name)
	b.purgeEvents(1)
	b.passed(third, third)
	b.aged(`INSERT INTO dead_letters (consumer, position, event_id, last_error)
		SELECT $1, id, event_id, 'no' FROM outbox WHERE id = $2`, orderConfirmations.Name, second)
	b.purgeEvents(0) // a dead letter, and a young event
	b.aged("DELETE FROM dead_letters")
	b.purgeEvents(1)
	require.Equal(t, third, value[int64](b, "SELECT id FROM outbox"))
}

func TestPurgeInbox_KeepsWhatIsYoungOrNotPassed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, second := b.event(9*day), b.event(9*day)
	b.consumed(9 * day)
	purge := func(want int) {
		t.Helper()
		n, err := b.PurgeInbox(b.ctx, 8*day, 10)
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
	purge(0) // the group's cursor is before both
	b.passed(second, first)
	b.aged("UPDATE consumer_cursors SET position = $1 WHERE consumer = $2", second, orderConfirmations.Name) // a moment ago
	b.aged("UPDATE inbox SET created_at = now() WHERE position = $1", first)
	purge(0)
	b.aged("UPDATE inbox SET created_at = now() - interval '9 days' WHERE position = $1", first)
	purge(1)
	purge(0)
	require.Equal(t, second, value[int64](b, "SELECT position FROM inbox"))
}

// A statement that began before the cursor moved may still write what it found to be after it.
func TestPurgeInbox_WaitsUntilTheCursorHasMovedForAMinute(t *testing.T) {
	t.Parallel()
	b := setup(t)
	last := b.event(9 * day)
	b.consumed(9 * day)
	b.aged("UPDATE outbox_cursor SET position = $1", last)
	for _, purgeable := range []int64{0, 0, last} { // the first pass moves the cursor, the second notes it
		progress, err := NewOutbox(b.pool).AdvanceGroup(b.ctx, orderConfirmations, 10)
		require.NoError(t, err)
		require.Equal(t, last, progress.Cursor)
		_, err = NewOutbox(b.pool).AdvanceGroup(b.ctx, orderConfirmations, 10) // soon after, which changes nothing
		require.NoError(t, err)
		require.Equal(t, purgeable, value[int64](b, "SELECT purgeable FROM consumer_cursors WHERE consumer = $1", orderConfirmations.Name))
		b.aged("UPDATE consumer_cursors SET noted_at = noted_at - interval '1 minute' WHERE consumer = $1", orderConfirmations.Name)
	}
}

func TestPurgers_ShareEventsInSmallBatches(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 20 {
		b.event(8 * day)
	}
	b.consumed(9 * day)
	b.passed(20, 20)
	release := b.hold("SELECT FROM outbox WHERE id = 1 FOR NO KEY UPDATE")
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
	purger := purge.New(b.Store, purge.Options{Schedule: background.Schedule{Interval: 5 * time.Millisecond, Batch: 3}})
	purger.Start(b.ctx)
	defer purger.Stop()
	require.Eventually(t, func() bool { return b.count("outbox") == 0 && b.count("inbox") == 0 }, testTimeout, 5*time.Millisecond)
}
