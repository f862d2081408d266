package postgres

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/checkout"
)

// cardPayment is an order with a card payment that has begun.
type cardPayment struct {
	order  checkout.Order
	wanted checkout.NewPayment
	call   checkout.Call
	begun  checkout.Taken[checkout.Payment]
}

func (b *bundle) beginCardPayment(key string) cardPayment {
	b.t.Helper()
	order := b.order(b.customer().ID, 1)
	wanted := checkout.NewPayment{OrderID: order.ID, Method: checkout.MethodCard, Token: "tok_visa"}
	c := cardPayment{order: order, wanted: wanted, call: b.call(key, wanted)}
	c.begun = b.resume(c)
	return c
}

// resume asks again for a card payment that is not settled, and returns its next attempt.
func (b *bundle) resume(c cardPayment) checkout.Taken[checkout.Payment] {
	b.t.Helper()
	begun, err := b.CardPayments().Begin(b.ctx, c.call, c.wanted)
	require.NoError(b.t, err)
	require.Nil(b.t, begun.Answer)
	return begun.Taken
}

func TestPayFromWallet_MovesTheMoney(t *testing.T) {
	t.Parallel()
	b := setup(t)
	customer := b.customer().ID
	b.topUp(customer, 6000)
	order := b.order(customer, 2)
	payment := b.pay(order, checkout.MethodWallet)
	require.Equal(t, checkout.StatusSucceeded, payment.Status)
	require.Empty(t, payment.Token, "a wallet has no token, whatever the client sent")
	require.Equal(t, usd(5000), payment.Amount)
	require.EqualValues(t, 1000, b.balance(customer))
	require.Equal(t, checkout.OrderPaid, b.orderStatus(order.ID))
	stored, err := b.Payment(b.ctx, b.account, payment.ID)
	require.NoError(t, err)
	require.Equal(t, payment, stored)
	require.Equal(t, []string{"order.placed", "payment.succeeded"}, b.events(order.ID))
	b.requireBooks()

	wanted := checkout.NewPayment{OrderID: order.ID, Method: checkout.MethodWallet}
	answer, err := b.PayFromWallet(b.ctx, b.call("again", wanted), wanted)
	requireRefused(t, "order_already_paid", answer, err)
}

func TestPayFromWallet_NeverGoesBelowZero(t *testing.T) {
	t.Parallel()
	b := setup(t)
	customer := b.customer().ID
	b.topUp(customer, 3*2500+2499)
	answers := inParallel(12, func(int) result {
		order := b.order(customer, 1)
		wanted := checkout.NewPayment{OrderID: order.ID, Method: checkout.MethodWallet}
		return resultOf(b.PayFromWallet(b.ctx, b.call(order.ID.String(), wanted), wanted))
	})
	require.Equal(t, map[string]int{"": 3, "insufficient_funds": 9}, tally(answers))
	require.EqualValues(t, 2499, b.balance(customer))
	b.requireBooks()
}

func TestCardPayment_HasThreePhases(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := b.beginCardPayment("k")
	require.Equal(t, checkout.StatusProcessing, c.begun.Value.Status)
	require.EqualValues(t, 1, c.begun.Call.Claim.Attempt)
	require.Equal(t, checkout.OrderPaying, b.orderStatus(c.order.ID))
	require.Zero(t, b.count("ledger_transactions"))
	_, err := b.UpdateOrder(b.ctx, b.keyless(), c.order.ID, checkout.OrderChange{Cancel: true})
	requireCode(t, "order_being_paid", err)

	answer, err := b.CardPayments().Settle(b.ctx, c.begun, approved)
	payment := decode[checkout.Payment](t, answer, err)
	require.Equal(t, checkout.StatusSucceeded, payment.Status)
	require.Equal(t, "ch_1", payment.ProviderID)
	require.Equal(t, checkout.OrderPaid, b.orderStatus(c.order.ID))
	require.Equal(t, []string{"order.placed", "payment.succeeded"}, b.events(c.order.ID))
	require.Equal(t, 1, b.count("ledger_transactions"))
	b.requireBooks()

	again, err := b.CardPayments().Begin(b.ctx, c.call, c.wanted)
	require.NoError(t, err)
	require.True(t, again.Answer.Replayed)
	require.Equal(t, contentOf(answer).Body, contentOf(*again.Answer).Body)
}

func TestCardPayment_RetryTakesTheNextAttempt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.beginCardPayment("k")
	second := b.resume(first)
	require.Equal(t, first.begun.Value.ID, second.Value.ID)
	require.Equal(t, first.begun.Value.Token, second.Value.Token)
	require.EqualValues(t, 2, second.Call.Claim.Attempt)

	_, err := b.CardPayments().Settle(b.ctx, first.begun, declined)
	require.ErrorIs(t, err, checkout.ErrKeyInProgress, "the first attempt has lost the fence")
	require.Equal(t, checkout.OrderPaying, b.orderStatus(first.order.ID))

	settled, err := b.CardPayments().Settle(b.ctx, second, approved)
	require.NoError(t, err)
	late, err := b.CardPayments().Settle(b.ctx, first.begun, declined)
	require.NoError(t, err)
	require.True(t, late.Replayed)
	require.Equal(t, contentOf(settled).Body, contentOf(late).Body)
	require.Equal(t, checkout.OrderPaid, b.orderStatus(first.order.ID))
}

func TestCardPayment_SettlesOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := b.beginCardPayment("k")
	answers := inParallel(8, func(int) result {
		return resultOf(b.CardPayments().Settle(b.ctx, c.begun, approved))
	})
	fresh := 0
	for _, a := range answers {
		require.NoError(t, a.err)
		require.Equal(t, contentOf(answers[0].answer).Body, contentOf(a.answer).Body)
		if !a.answer.Replayed {
			fresh++
		}
	}
	require.Equal(t, 1, fresh)
	require.Equal(t, 1, b.count("ledger_transactions"))
	require.Equal(t, []string{"order.placed", "payment.succeeded"}, b.events(c.order.ID))
}

func TestCardPayment_ConcurrentRetriesGetDifferentAttempts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := b.beginCardPayment("k")
	attempts := inParallel(8, func(int) int32 {
		begun, err := b.CardPayments().Begin(b.ctx, c.call, c.wanted)
		if err != nil || begun.Answer != nil {
			return 0
		}
		return begun.Call.Claim.Attempt
	})
	require.ElementsMatch(t, []int32{2, 3, 4, 5, 6, 7, 8, 9}, attempts)
	require.Equal(t, 1, b.count("payments"))
}

func TestCardPayment_BeginsOnceForConcurrentKeys(t *testing.T) {
	t.Parallel()
	b := setup(t)
	order := b.order(b.customer().ID, 1)
	wanted := checkout.NewPayment{OrderID: order.ID, Method: checkout.MethodCard, Token: "tok_visa"}
	answers := inParallel(8, func(i int) result {
		begun, err := b.CardPayments().Begin(b.ctx, b.call(newID().String(), wanted), wanted)
		require.Nil(t, begun.Answer)
		return result{created, err}
	})
	require.Equal(t, map[string]int{"": 1, "order_being_paid": 7}, tally(answers))
	require.Equal(t, 1, b.count("payments"))
	require.Equal(t, 1, b.count("idempotency_keys WHERE status <> 'refused'"), "the others may try again with their keys")
}

func TestCardPayment_DeclinedLeavesTheOrderPayable(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := b.beginCardPayment("k")
	answer, err := b.CardPayments().Settle(b.ctx, c.begun, declined)
	requireRefused(t, "payment_declined", answer, err)
	require.Equal(t, checkout.OrderPending, b.orderStatus(c.order.ID))
	payment, err := b.Payment(b.ctx, b.account, c.begun.Value.ID)
	require.NoError(t, err)
	require.Equal(t, checkout.StatusDeclined, payment.Status)
	require.Equal(t, "card_declined", payment.DeclineCode)
	require.Zero(t, b.count("ledger_transactions"))
	require.Equal(t, []string{"order.placed", "payment.declined"}, b.events(c.order.ID))
	require.Equal(t, "failed", value[string](b, "SELECT status FROM idempotency_keys"))

	again, err := b.CardPayments().Begin(b.ctx, c.call, c.wanted)
	require.NoError(t, err)
	require.True(t, again.Answer.Replayed)
	require.Equal(t, contentOf(answer).Body, contentOf(*again.Answer).Body)

	b.pay(c.order, checkout.MethodCard) // with another key
	require.Equal(t, checkout.OrderPaid, b.orderStatus(c.order.ID))
}

func TestCardPayment_FinalErrorBeforeTheProviderIsKept(t *testing.T) {
	t.Parallel()
	b := setup(t)
	order := b.order(b.customer().ID, 1)
	b.pay(order, checkout.MethodCard)
	wanted := checkout.NewPayment{OrderID: order.ID, Method: checkout.MethodCard, Token: "tok_visa"}
	for _, replayed := range []bool{false, true} {
		begun, err := b.CardPayments().Begin(b.ctx, b.call("k", wanted), wanted)
		require.NoError(t, err)
		requireRefused(t, "order_already_paid", *begun.Answer, nil)
		require.Equal(t, replayed, begun.Answer.Replayed)
	}
	require.Equal(t, 1, b.count("payments"))
}

func TestCardPayment_KeyInProgressIsForItsOwnRequest(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := b.beginCardPayment("k")
	another := b.call("k", "other")
	topUp := checkout.NewTopUp{CustomerID: c.order.CustomerID, Amount: usd(1)}
	_, err := b.CardPayments().Begin(b.ctx, another, c.wanted)
	require.ErrorIs(t, err, checkout.ErrKeyInProgress)
	for _, call := range []checkout.Call{another, c.call} {
		_, err = b.TopUp(b.ctx, call, topUp)
		require.ErrorIs(t, err, checkout.ErrKeyInProgress)
	}
	require.EqualValues(t, 1, value[int32](b, "SELECT attempt FROM idempotency_keys WHERE status = 'in_progress'"))

	_, err = b.pool.Exec(b.ctx, "UPDATE idempotency_keys SET expires_at = now() - interval '1 day'")
	require.NoError(t, err)
	require.EqualValues(t, 2, b.resume(c).Call.Claim.Attempt, "a key in progress never expires")
}

// TestCardPayment_KeyIsReusedOnceAnAnswerIsKept: 422 is final, and a payment that is not settled
// decides nothing.
func TestCardPayment_KeyIsReusedOnceAnAnswerIsKept(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := b.beginCardPayment("k")
	another := func() error {
		_, err := b.CardPayments().Begin(b.ctx, b.call("k", "other"), c.wanted)
		return err
	}
	require.ErrorIs(t, another(), checkout.ErrKeyInProgress)
	_, err := b.CardPayments().Settle(b.ctx, c.begun, approved)
	require.NoError(t, err)
	require.ErrorIs(t, another(), checkout.ErrKeyReused)
}
