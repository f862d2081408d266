package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/background"
	"github.com/oncepay/oncepay/internal/checkout"
)

// timeUp makes orders due.
func (b *bundle) timeUp(orders ...checkout.Order) {
	b.t.Helper()
	for _, order := range orders {
		_, err := b.pool.Exec(b.ctx, "UPDATE orders SET expires_at = now() WHERE id = $1", order.ID)
		require.NoError(b.t, err)
	}
}

func (b *bundle) expire(limit, expired int) {
	b.t.Helper()
	n, err := b.ExpireOrders(b.ctx, limit)
	require.NoError(b.t, err)
	require.Equal(b.t, expired, n)
}

func TestExpiry_ReturnsTheStockOfUnpaidOrders(t *testing.T) {
	t.Parallel()
	b := setup(t)
	customer := b.customer().ID
	unpaid, inTime := b.order(customer, 3), b.order(customer, 4)
	paid, cancelled := b.order(customer, 5), b.order(customer, 6)
	b.pay(paid, checkout.MethodCard)
	_, err := b.UpdateOrder(b.ctx, b.keyless(), cancelled.ID, checkout.OrderChange{Cancel: true})
	require.NoError(t, err)
	paying := b.beginCardPayment("k")
	foreign := &bundle{Store: b.Store, t: t, ctx: b.ctx, account: b.other}
	others := foreign.order(foreign.customer().ID, 2)
	b.timeUp(unpaid, paid, cancelled, paying.order, others)

	b.expire(10, 2)
	b.expire(10, 0)
	for order, status := range map[uuid.UUID]checkout.OrderStatus{unpaid.ID: checkout.OrderExpired, inTime.ID: checkout.OrderPending,
		paid.ID: checkout.OrderPaid, cancelled.ID: checkout.OrderCancelled, paying.order.ID: checkout.OrderPaying} {
		require.Equal(t, status, b.orderStatus(order))
	}
	require.Equal(t, checkout.OrderExpired, foreign.orderStatus(others.ID))
	require.Equal(t, []string{"order.placed", "order.expired"}, b.events(unpaid.ID))
	require.Equal(t, "expired", value[string](b, "SELECT data->>'status' FROM outbox WHERE subject = $1 AND type = 'order.expired'", others.ID))
	require.Equal(t, b.other.String(), value[string](b, "SELECT account_id::text FROM outbox WHERE subject = $1 AND type = 'order.expired'", others.ID))
	b.requireStock("tee-black", plenty)
	foreign.requireStock("tee-black", plenty)

	wanted := checkout.NewPayment{OrderID: unpaid.ID, Method: checkout.MethodCard, Token: "tok_visa"}
	begun, err := b.CardPayments().Begin(b.ctx, b.call("too late", wanted), wanted)
	require.NoError(t, err)
	requireRefused(t, "order_expired", *begun.Answer, nil)

	_, err = b.CardPayments().Settle(b.ctx, paying.begun, declined)
	require.NoError(t, err)
	b.expire(10, 1) // no payment is in progress any more
	require.Equal(t, checkout.OrderExpired, b.orderStatus(paying.order.ID))
	b.requireBooks()
}

func TestExpiry_IsByTheOrdersTime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	store := NewStore(b.pool, Options{UnpaidFor: time.Millisecond})
	brief := &bundle{Store: store, t: t, ctx: b.ctx, account: b.account}
	order := brief.order(brief.customer().ID, 1)
	expirer := checkout.NewExpirer(store, background.Schedule{Interval: 5 * time.Millisecond})
	expirer.Start(b.ctx)
	defer expirer.Stop()
	require.Eventually(t, func() bool { return b.orderStatus(order.ID) == checkout.OrderExpired }, testTimeout, 5*time.Millisecond)
	expirer.Stop()
	require.EqualValues(t, plenty, b.stock("tee-black"))
}

func TestExpiry_ReturnsStockOnceWithManyExpirers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	customer := b.customer().ID
	var orders []checkout.Order
	for range 30 {
		orders = append(orders, b.order(customer, 2))
	}
	b.timeUp(orders...)
	sum := 0
	for sum < 30 {
		for _, n := range inParallel(6, func(int) int {
			n, err := b.ExpireOrders(b.ctx, 4)
			require.NoError(t, err)
			require.LessOrEqual(t, n, 4)
			return n
		}) {
			sum += n
		}
	}
	require.Equal(t, 30, sum)
	b.expire(4, 0)
	require.EqualValues(t, plenty, b.stock("tee-black"))
	require.Equal(t, 30, b.count("outbox WHERE type = 'order.expired'"))
}

func TestOrder_IsPaidCancelledOrExpiredOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	customer := b.customer().ID
	b.topUp(customer, 1_000_000)
	for range 25 {
		order := b.order(customer, 1)
		b.timeUp(order)
		key := newID().String()
		answers := inParallel(3, func(i int) result {
			switch i {
			case 0:
				wanted := checkout.NewPayment{OrderID: order.ID, Method: checkout.MethodWallet}
				return resultOf(b.PayFromWallet(b.ctx, b.call("pay "+key, wanted), wanted))
			case 1:
				return resultOf(b.UpdateOrder(b.ctx, b.call("cancel "+key, 1), order.ID, checkout.OrderChange{Cancel: true}))
			default:
				_, err := b.ExpireOrders(b.ctx, 1)
				return result{err: err}
			}
		})
		require.NoError(t, answers[2].err)
		status := b.orderStatus(order.ID)
		require.Contains(t, []checkout.OrderStatus{checkout.OrderPaid, checkout.OrderCancelled, checkout.OrderExpired}, status)
		require.Equal(t, status == checkout.OrderPaid, answers[0].code() == "")
		require.Equal(t, status == checkout.OrderCancelled, answers[1].code() == "")
		require.Len(t, b.events(order.ID), 2)
		b.requireBooks()
		b.requireStock("tee-black", plenty)
	}
}

func TestExpiry_SkipsWhatIsLocked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	customer := b.customer().ID
	locked, free := b.order(customer, 1), b.order(customer, 1)
	b.timeUp(locked, free)
	release := b.hold("SELECT FROM orders WHERE id = $1 FOR NO KEY UPDATE", locked.ID)
	b.expire(10, 1)
	require.Equal(t, checkout.OrderExpired, b.orderStatus(free.ID))
	release()
	b.expire(10, 1)
}

// TestExpiry_LocksProductsInTheUsualOrder has a session lock two products one after the other, in
// the order of their SKUs, while an order that lists them the other way round expires.
func TestExpiry_LocksProductsInTheUsualOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	answer, err := b.PlaceOrder(b.ctx, b.keyless(), checkout.NewOrder{CustomerID: b.customer().ID,
		Items: []checkout.Wanted{{SKU: "tee-black", Quantity: 1}, {SKU: "mug-white", Quantity: 1}}})
	b.timeUp(decode[checkout.Order](t, answer, err))
	const lock = "SELECT FROM products WHERE account_id = $1 AND sku = $2 FOR NO KEY UPDATE"
	holder, err := b.pool.Begin(b.ctx)
	require.NoError(t, err)
	t.Cleanup(func() { _ = holder.Rollback(context.Background()) }) // in case the test fails before
	_, err = holder.Exec(b.ctx, lock, b.account, "mug-white")
	require.NoError(t, err)
	expired := make(chan error, 1)
	go func() { _, err := b.ExpireOrders(b.ctx, 1); expired <- err }()
	require.Eventually(t, func() bool {
		return b.count("pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()") == 1
	}, testTimeout, 2*time.Millisecond)
	_, err = holder.Exec(b.ctx, lock, b.account, "tee-black")
	require.NoError(t, err)
	require.NoError(t, holder.Commit(b.ctx))
	require.NoError(t, <-expired)
}

func TestExpiry_OfABatchIsTwoRoundTrips(t *testing.T) {
	t.Parallel()
	b := setup(t)
	customer := b.customer().ID
	store, w := b.wired()
	for _, orders := range []int{1, 5} {
		for range orders {
			b.timeUp(b.order(customer, 1))
		}
		trips := w.measure(func() {
			n, err := store.ExpireOrders(b.ctx, 10)
			require.NoError(t, err)
			require.Equal(t, orders, n)
		})
		if orders > 1 { // the first connected and prepared
			require.Equal(t, 2, trips)
		}
	}
}
