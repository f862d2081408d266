package postgres

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/outbox"
)

// confirmations are the first consumer group, and an event that waits for it.
func (b *bundle) confirmations() (outbox.Subscription, outbox.Event) {
	b.t.Helper()
	position := b.event(0)
	event := outbox.Event{Position: position, AccountID: b.account, Type: "order.placed"}
	require.NoError(b.t, b.pool.QueryRow(b.ctx, "SELECT event_id, subject FROM outbox WHERE id = $1", position).Scan(&event.ID, &event.Subject))
	return NewInbox(b.pool, false).Subscriptions()[0], event
}

// TestInbox_EndsADeadLetterOfWhatHadItsEffect: one consumer was refused while another one
// succeeded. The dead letter would be published for ever, and make the effect again once the inbox
// is purged.
func TestInbox_EndsADeadLetterOfWhatHadItsEffect(t *testing.T) {
	t.Parallel()
	b := setup(t)
	group, event := b.confirmations()
	for _, want := range []int{1, 0} {
		b.aged(`INSERT INTO dead_letters (consumer, position, event_id, last_error) VALUES ($1, $2, $3, 'no')`, group.Name, event.Position, event.ID)
		n, err := group.Handle(b.ctx, []outbox.Event{event})
		require.NoError(t, err)
		require.Equal(t, want, n)
		require.Zero(t, b.count("dead_letters"))
	}
	require.Equal(t, 1, b.count("order_confirmations"))
}

// TestInbox_RefusesNothingThatItsCursorHasPassed: a consumer that was paused for longer than the
// inbox is kept comes back with a refusal.
func TestInbox_RefusesNothingThatItsCursorHasPassed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	group, event := b.confirmations()
	b.aged("UPDATE consumer_cursors SET position = $1 WHERE consumer = $2", event.Position, group.Name)
	attempts, err := group.Refuse(b.ctx, event, "no")
	require.NoError(t, err)
	require.Zero(t, attempts)
	require.Zero(t, b.count("dead_letters"))
	b.aged("UPDATE consumer_cursors SET position = $1 WHERE consumer = $2", event.Position-1, group.Name)
	for want := range 2 {
		attempts, err = group.Refuse(b.ctx, event, "no")
		require.NoError(t, err)
		require.Equal(t, want+1, attempts)
		b.aged("UPDATE consumer_cursors SET position = $1 WHERE consumer = $2", event.Position, group.Name) // a dead letter does not hold it
	}
}

// TestInbox_TakesTypeAccountAndSubjectFromTheOutbox: whoever may write to Redis relabels an order
// that was placed as one that was paid, or as another account's.
func TestInbox_TakesTypeAccountAndSubjectFromTheOutbox(t *testing.T) {
	t.Parallel()
	b := setup(t)
	confirmations, event := b.confirmations()
	notices := NewInbox(b.pool, false).Subscriptions()[1]
	relabelled := event
	relabelled.Type, relabelled.AccountID, relabelled.Subject = "payment.succeeded", newID(), newID()

	n, err := notices.Handle(b.ctx, []outbox.Event{relabelled})
	require.NoError(t, err)
	require.Zero(t, n)
	require.Zero(t, b.count("warehouse_notices"), "nothing is shipped that is not paid")
	require.Zero(t, b.count("inbox"), "the real event of this position may still come")

	n, err = confirmations.Handle(b.ctx, []outbox.Event{relabelled})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	var account, order uuid.UUID
	require.NoError(t, b.pool.QueryRow(b.ctx, "SELECT account_id, order_id FROM order_confirmations").Scan(&account, &order))
	require.Equal(t, []uuid.UUID{event.AccountID, event.Subject}, []uuid.UUID{account, order})
}
