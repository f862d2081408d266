package postgres

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/checkout"
)

// decline has card payments of an order declined, one after the other.
func (b *bundle) decline(order checkout.Order, times int) {
	b.t.Helper()
	for range times {
		answer, err := b.payByCard(order, newID().String(), declined)
		requireRefused(b.t, "payment_declined", answer, err)
	}
}

// payByCard pays an order by a card about which the provider says this.
func (b *bundle) payByCard(order checkout.Order, key string, says checkout.GatewayResult) (checkout.Answer, error) {
	wanted := checkout.NewPayment{OrderID: order.ID, Method: checkout.MethodCard, Token: "tok_visa"}
	call := b.call(key, wanted)
	begun, err := b.CardPayments().Begin(b.ctx, call, wanted)
	if err != nil {
		return checkout.Answer{}, err
	}
	if begun.Answer != nil {
		return *begun.Answer, nil
	}
	return b.CardPayments().Settle(b.ctx, begun.Taken, says)
}

func (b *bundle) declines(order uuid.UUID) int {
	b.t.Helper()
	return b.count("payments WHERE order_id = $1 AND status = 'declined'", order)
}

// TestDeclines_OfAnOrderAreLimited: the answer is kept, and what needs no card works as before.
func TestDeclines_OfAnOrderAreLimited(t *testing.T) {
	t.Parallel()
	b := setup(t)
	customer := b.customer().ID
	byWallet, cancelled, expired, last := b.order(customer, 1), b.order(customer, 1), b.order(customer, 1), b.order(customer, 1)
	for _, order := range []checkout.Order{byWallet, cancelled, expired} {
		b.decline(order, checkout.MaxDeclines)
		for _, replayed := range []bool{false, true} {
			answer, err := b.payByCard(order, "one more for "+order.ID.String(), approved)
			requireRefused(t, "too_many_declines", answer, err)
			require.Equal(t, replayed, answer.Replayed)
		}
		require.Equal(t, checkout.MaxDeclines, b.declines(order.ID))
		require.Equal(t, checkout.OrderPending, b.orderStatus(order.ID))
	}
	b.topUp(customer, 2500)
	require.Equal(t, checkout.StatusSucceeded, b.pay(byWallet, checkout.MethodWallet).Status)
	answer, err := b.UpdateOrder(b.ctx, b.keyless(), cancelled.ID, checkout.OrderChange{Cancel: true})
	require.Equal(t, checkout.OrderCancelled, decode[checkout.Order](t, answer, err).Status)
	b.timeUp(expired)
	b.expire(10, 1)
	require.Equal(t, checkout.OrderExpired, b.orderStatus(expired.ID))

	b.decline(last, checkout.MaxDeclines-1)
	answer, err = b.payByCard(last, "the last", approved)
	require.Equal(t, checkout.StatusSucceeded, decode[checkout.Payment](t, answer, err).Status)
	b.requireBooks()
}

// TestDeclines_AreCountedBehindTheOrdersLock has a payment wait for the order until the last
// decline that is allowed is committed.
func TestDeclines_AreCountedBehindTheOrdersLock(t *testing.T) {
	t.Parallel()
	b := setup(t)
	order := b.order(b.customer().ID, 1)
	b.decline(order, checkout.MaxDeclines-1)
	last := checkout.NewPayment{OrderID: order.ID, Method: checkout.MethodCard, Token: "tok_visa"}
	call := b.call("last", last)
	begun, err := b.CardPayments().Begin(b.ctx, call, last)
	require.NoError(t, err)

	release := b.hold("SELECT FROM orders WHERE id = $1 FOR UPDATE", order.ID)
	results := make(chan result, 2)
	waiting := func(n int) {
		require.Eventually(t, func() bool {
			return b.count("pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()") == n
		}, testTimeout, 2*time.Millisecond)
	}
	go func() { results <- resultOf(b.CardPayments().Settle(b.ctx, begun.Taken, declined)) }()
	waiting(1)
	go func() { results <- resultOf(b.payByCard(order, "one more", declined)) }()
	waiting(2)
	release()
	require.Equal(t, map[string]int{"payment_declined": 1, "too_many_declines": 1}, tally([]result{<-results, <-results}))
	require.Equal(t, checkout.MaxDeclines, b.declines(order.ID))
}

// TestDeclines_AreExactForConcurrentCards has many clients try cards until they may no longer.
func TestDeclines_AreExactForConcurrentCards(t *testing.T) {
	t.Parallel()
	b := setup(t)
	order := b.order(b.customer().ID, 1)
	answers := inParallel(8, func(int) result {
		for {
			r := resultOf(b.payByCard(order, newID().String(), declined))
			if code := r.code(); code != "payment_declined" && code != "order_being_paid" {
				return r
			}
		}
	})
	require.Equal(t, map[string]int{"too_many_declines": 8}, tally(answers))
	require.Equal(t, checkout.MaxDeclines, b.declines(order.ID))
}
