package postgres

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/checkout"
)

// refundWanted asks for a part of a payment.
func refundWanted(payment uuid.UUID, amount int64) checkout.NewRefund {
	money := usd(amount)
	return checkout.NewRefund{PaymentID: payment, Amount: &money}
}

func (b *bundle) beginCardRefund(key string, wanted checkout.NewRefund) checkout.Taken[checkout.Refund] {
	b.t.Helper()
	begun, err := b.CardRefunds().Begin(b.ctx, b.call(key, wanted), wanted)
	require.NoError(b.t, err)
	require.Nil(b.t, begun.Answer)
	return begun.Taken
}

func (b *bundle) refunded(payment uuid.UUID) int64 {
	b.t.Helper()
	p, err := b.Payment(b.ctx, b.account, payment)
	require.NoError(b.t, err)
	return p.Refunded.Amount
}

func TestRefundToWallet_MayBeInParts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	customer := b.customer().ID
	b.topUp(customer, 5000)
	order := b.order(customer, 2)
	payment := b.pay(order, checkout.MethodWallet)

	wanted := refundWanted(payment.ID, 2000)
	answer, err := b.RefundToWallet(b.ctx, b.call("part", wanted), wanted)
	require.Equal(t, checkout.StatusSucceeded, decode[checkout.Refund](t, answer, err).Status)
	require.EqualValues(t, 2000, b.balance(customer))
	require.Equal(t, checkout.OrderPartiallyRefunded, b.orderStatus(order.ID))

	answer, err = b.RefundToWallet(b.ctx, b.call("too much", 1), refundWanted(payment.ID, 3001))
	requireRefused(t, "refund_exceeds_payment", answer, err)

	rest := checkout.NewRefund{PaymentID: payment.ID}
	answer, err = b.RefundToWallet(b.ctx, b.call("rest", rest), rest)
	require.Equal(t, usd(3000), decode[checkout.Refund](t, answer, err).Amount)
	require.EqualValues(t, 5000, b.balance(customer))
	require.Equal(t, checkout.OrderRefunded, b.orderStatus(order.ID))
	require.Equal(t, []string{"order.placed", "payment.succeeded", "refund.succeeded", "refund.succeeded"}, b.events(order.ID))
	b.requireBooks()

	answer, err = b.RefundToWallet(b.ctx, b.call("nothing left", 1), rest)
	requireRefused(t, "refund_exceeds_payment", answer, err)
}

func TestRefundToWallet_NeverExceedsThePayment(t *testing.T) {
	t.Parallel()
	b := setup(t)
	customer := b.customer().ID
	b.topUp(customer, 2500)
	payment := b.pay(b.order(customer, 1), checkout.MethodWallet)
	answers := inParallel(12, func(int) result {
		return resultOf(b.RefundToWallet(b.ctx, b.call(newID().String(), 1), refundWanted(payment.ID, 800)))
	})
	require.Equal(t, map[string]int{"": 3, "refund_exceeds_payment": 9}, tally(answers))
	require.EqualValues(t, 2400, b.balance(customer))
	require.EqualValues(t, 2400, b.refunded(payment.ID))
	b.requireBooks()
}

func TestCardRefund_ReservesItsAmount(t *testing.T) {
	t.Parallel()
	b := setup(t)
	payment := b.pay(b.order(b.customer().ID, 1), checkout.MethodCard)
	answers := inParallel(6, func(int) result {
		begun, err := b.CardRefunds().Begin(b.ctx, b.call(newID().String(), 1), refundWanted(payment.ID, 1000))
		if begun.Answer != nil {
			return result{*begun.Answer, err}
		}
		return result{created, err}
	})
	require.Equal(t, map[string]int{"": 2, "refund_exceeds_payment": 4}, tally(answers))
	require.EqualValues(t, 2000, b.refunded(payment.ID))
}

func TestCardRefund_HasThreePhases(t *testing.T) {
	t.Parallel()
	b := setup(t)
	order := b.order(b.customer().ID, 1)
	payment := b.pay(order, checkout.MethodCard)
	wanted := refundWanted(payment.ID, 1500)
	first := b.beginCardRefund("k", wanted)
	require.Equal(t, checkout.StatusProcessing, first.Value.Status)
	require.Equal(t, "ch_1", first.Value.ChargeID)
	require.EqualValues(t, 1500, b.refunded(payment.ID))
	require.Equal(t, checkout.OrderPaid, b.orderStatus(order.ID), "only settled refunds count")

	second := b.beginCardRefund("k", wanted)
	require.Equal(t, first.Value.ID, second.Value.ID)
	require.EqualValues(t, 2, second.Call.Claim.Attempt)
	require.EqualValues(t, 1500, b.refunded(payment.ID), "reserved once")
	_, err := b.CardRefunds().Settle(b.ctx, first, declined)
	require.ErrorIs(t, err, checkout.ErrKeyInProgress)

	result := checkout.GatewayResult{Outcome: checkout.OutcomeApproved, ProviderID: "re_1"}
	answer, err := b.CardRefunds().Settle(b.ctx, second, result)
	settled := decode[checkout.Refund](t, answer, err)
	require.Equal(t, checkout.StatusSucceeded, settled.Status)
	require.Equal(t, "re_1", settled.ProviderID)
	require.Equal(t, checkout.OrderPartiallyRefunded, b.orderStatus(order.ID))
	late, err := b.CardRefunds().Settle(b.ctx, first, declined)
	require.NoError(t, err)
	require.True(t, late.Replayed)
	require.Equal(t, contentOf(answer).Body, contentOf(late).Body)
	require.EqualValues(t, 1500, b.refunded(payment.ID))
	require.Equal(t, []string{"order.placed", "payment.succeeded", "refund.succeeded"}, b.events(order.ID))
	b.requireBooks()
}

func TestCardRefund_DeclinedReleasesItsAmount(t *testing.T) {
	t.Parallel()
	b := setup(t)
	order := b.order(b.customer().ID, 1)
	payment := b.pay(order, checkout.MethodCard)
	refund := b.beginCardRefund("k", checkout.NewRefund{PaymentID: payment.ID})
	answer, err := b.CardRefunds().Settle(b.ctx, refund, declined)
	requireRefused(t, "refund_declined", answer, err)
	require.Zero(t, b.refunded(payment.ID))
	require.Equal(t, checkout.OrderPaid, b.orderStatus(order.ID))
	require.Equal(t, []string{"order.placed", "payment.succeeded", "refund.declined"}, b.events(order.ID))
	require.Equal(t, 1, b.count("ledger_transactions"))

	refund = b.beginCardRefund("again", checkout.NewRefund{PaymentID: payment.ID})
	_, err = b.CardRefunds().Settle(b.ctx, refund, approved)
	require.NoError(t, err)
	require.Equal(t, checkout.OrderRefunded, b.orderStatus(order.ID))
	b.requireBooks()
}

func TestOrder_IsRefundedWhenAllOfItIsSettled(t *testing.T) {
	t.Parallel()
	b := setup(t)
	order := b.order(b.customer().ID, 1)
	payment := b.pay(order, checkout.MethodCard)
	part1 := b.beginCardRefund("1", refundWanted(payment.ID, 1000))
	part2 := b.beginCardRefund("2", refundWanted(payment.ID, 1500))
	require.EqualValues(t, 2500, b.refunded(payment.ID))
	_, err := b.CardRefunds().Settle(b.ctx, part2, approved)
	require.NoError(t, err)
	require.Equal(t, checkout.OrderPartiallyRefunded, b.orderStatus(order.ID))
	_, err = b.CardRefunds().Settle(b.ctx, part1, approved)
	require.NoError(t, err)
	require.Equal(t, checkout.OrderRefunded, b.orderStatus(order.ID))
}

func TestCardRefund_NeedsASucceededPayment(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := b.beginCardPayment("k")
	wanted := checkout.NewRefund{PaymentID: c.begun.Value.ID}
	call := b.call("r", wanted)
	_, err := b.CardRefunds().Begin(b.ctx, call, wanted)
	requireCode(t, "payment_processing", err) // the key may be used again when the payment has settled
	require.Equal(t, 1, b.count("idempotency_keys WHERE status <> 'refused'"))

	_, err = b.CardPayments().Settle(b.ctx, c.begun, declined)
	require.NoError(t, err)
	begun, err := b.CardRefunds().Begin(b.ctx, b.call("r", wanted), wanted)
	require.NoError(t, err)
	requireRefused(t, "payment_not_succeeded", *begun.Answer, nil)
	require.Zero(t, b.count("refunds"))

	paid := b.beginCardPayment("k2")
	wanted = checkout.NewRefund{PaymentID: paid.begun.Value.ID}
	_, err = b.CardRefunds().Begin(b.ctx, b.call("r2", wanted), wanted)
	requireCode(t, "payment_processing", err)
	_, err = b.CardPayments().Settle(b.ctx, paid.begun, approved)
	require.NoError(t, err)
	refund := b.beginCardRefund("r2", wanted)
	require.Equal(t, checkout.StatusProcessing, refund.Value.Status)
}
