package postgres

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/checkout"
)

// TestLock_OfAPausedReplicaIsReleased lets a transaction sleep with an order locked, as a replica
// does that is stopped with SIGSTOP.
func TestLock_OfAPausedReplicaIsReleased(t *testing.T) {
	t.Parallel()
	b := setup(t)
	order := b.order(b.customer().ID, 1)
	_, err := once(b.ctx, b.Store, b.call("k", 1), b.locking(order.ID, func(*transaction) (checkout.Order, checkout.Changes, *checkout.Error) {
		answer, err := b.UpdateOrder(b.ctx, b.keyless(), order.ID, checkout.OrderChange{Cancel: true})
		require.Equal(t, checkout.OrderCancelled, decode[checkout.Order](t, answer, err).Status)
		return order, checkout.ExpireOrder(order, order.UpdatedAt), nil
	}))
	requireUnavailable(t, err)
	require.Equal(t, checkout.OrderCancelled, b.orderStatus(order.ID))
	require.Zero(t, b.count("idempotency_keys"))
}

func TestLock_WaitIsBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	order := b.order(b.customer().ID, 1)
	holder, err := b.pool.Begin(b.ctx)
	require.NoError(t, err)
	defer func() { require.NoError(t, holder.Rollback(b.ctx)) }()
	_, err = holder.Exec(b.ctx, "SET LOCAL idle_in_transaction_session_timeout = 0")
	require.NoError(t, err)
	_, err = holder.Exec(b.ctx, "SELECT FROM orders WHERE id = $1 FOR UPDATE", order.ID)
	require.NoError(t, err)
	_, err = b.UpdateOrder(b.ctx, b.call("k", 1), order.ID, checkout.OrderChange{Cancel: true})
	requireUnavailable(t, err)
	require.Zero(t, b.count("idempotency_keys"))
}

func TestAcquire_WaitIsBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	store, _ := b.wired() // of one connection
	held, err := store.pool.Acquire(b.ctx)
	require.NoError(t, err)
	defer held.Release()
	answers := inParallel(4, func(int) error {
		_, err := store.PlaceOrder(b.ctx, b.keyless(), checkout.NewOrder{})
		return err
	})
	_, err = store.Order(b.ctx, b.account, newID())
	for _, err := range append(answers, err) {
		requireUnavailable(t, err)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
}
