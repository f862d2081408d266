package postgres

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency/authority"
	"github.com/oncepay/oncepay/idempotency/authority/arrival"
	"github.com/oncepay/oncepay/internal/checkout"
)

// begunAgo makes a row as old as if it had been begun that long ago.
func (b *bundle) begunAgo(table string, ago time.Duration) {
	b.t.Helper()
	b.aged("UPDATE "+table+" SET created_at = now() - $1::interval, updated_at = now() - $1::interval", ago)
	b.aged("UPDATE idempotency_keys SET created_at = now() - $1::interval, taken_at = now() - $1::interval, due_at = NULL "+
		"WHERE status = 'in_progress'", ago)
}

// TestOldPayment_IsLookedUpAndNeverSent: after a day the provider has forgotten the key, and the
// same request would charge again.
func TestOldPayment_IsLookedUpAndNeverSent(t *testing.T) {
	t.Parallel()
	for _, charged := range []bool{true, false} {
		for _, byReconciler := range []bool{true, false} {
			b, p := setup(t), &provider{}
			c := b.lostPayment(p, "k")
			if !charged {
				p.moved = nil // the request did not arrive
			}
			b.begunAgo("payments", 24*time.Hour)
			sent := p.calls
			if byReconciler {
				b.reconcile(b.impatient(p), 1)
			}
			answer, err := b.payAgain(p, c)
			require.Equal(t, sent, p.calls, "nothing was sent")
			if charged {
				require.Equal(t, checkout.StatusSucceeded, decode[checkout.Payment](t, answer, err).Status)
				b.requirePaidOnce(p, c)
				continue
			}
			requireRefused(t, "payment_declined", answer, err)
			require.Equal(t, checkout.OrderPending, b.orderStatus(c.order.ID), "it may be paid by another request")
			require.Empty(t, p.moved)
		}
	}
}

// TestOldPayment_IsLookedUpBeforeItIsSent: this provider has charged, and has forgotten the key
// hours before it promises.
func TestOldPayment_IsLookedUpBeforeItIsSent(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{}
	c := b.lostPayment(p, "k")
	b.begunAgo("payments", 2*time.Hour)
	sent := p.calls
	b.reconcile(b.impatient(p), 1)
	require.Equal(t, sent, p.calls, "nothing was sent")
	b.requirePaidOnce(p, c)
}

// TestOldPayment_IsNotDeclinedBeforeTheLastRequestIsOver: this provider charges an hour after it
// was asked, and answers nothing.
func TestOldPayment_IsNotDeclinedBeforeTheLastRequestIsOver(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{}
	c := b.lostPayment(p, "k")
	charged := p.moved
	p.moved = nil // the request is under way
	b.begunAgo("payments", 23*time.Hour+time.Minute)
	sent := p.calls
	_, err := b.payAgain(p, c)
	requireCode(t, "payment_outcome_unknown", err)
	b.age("payments", unknownPause)
	b.reconcile(b.impatient(p), 0)
	require.Equal(t, checkout.StatusProcessing, b.stored(c).Status)

	p.moved = charged
	answer, err := b.payAgain(p, c)
	require.Equal(t, checkout.StatusSucceeded, decode[checkout.Payment](t, answer, err).Status)
	require.Equal(t, sent, p.calls, "nothing was sent")
	b.requirePaidOnce(p, c)
}

// TestOldPayment_IsSentWhileTheProviderRemembersTheKey is the other side of the age: the provider
// does not have it.
func TestOldPayment_IsSentWhileTheProviderRemembersTheKey(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{}
	c := b.lostPayment(p, "k")
	p.moved = nil
	b.begunAgo("payments", 22*time.Hour)
	sent := p.calls
	b.reconcile(b.impatient(p), 1)
	require.Equal(t, sent+1, p.calls)
	b.requirePaidOnce(p, c)
}

// rejects has the provider reject every charge from now on: its books stay as they are.
func (p *provider) rejects(books map[string]int64) {
	p.answers = func(int, checkout.GatewayResult) checkout.GatewayResult {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.moved = books
		return checkout.GatewayResult{Outcome: checkout.OutcomeAbsent, DeclineCode: "invalid_token"}
	}
}

// TestRejection_IsFinalForTheFirstAttemptAlone: the provider keeps nothing of it, so an earlier
// attempt that is still under way may charge later.
func TestRejection_IsFinalForTheFirstAttemptAlone(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{}
	p.rejects(nil)
	order := b.order(b.customer().ID, 1)
	wanted := checkout.NewPayment{OrderID: order.ID, Method: checkout.MethodCard, Token: "tok_nonsense"}
	answer, err := checkout.NewService(b.Store, p).PayOrder(b.ctx, b.call("first", wanted), wanted)
	requireRefused(t, "payment_declined", answer, err)

	p.answers = nil
	c := b.lostPayment(p, "k")
	charged := p.moved
	p.rejects(nil) // the first request is still under way
	_, err = b.payAgain(p, c)
	requireCode(t, "payment_outcome_unknown", err)
	b.age("payments", unknownPause)
	b.reconcile(b.impatient(p), 0)
	require.Equal(t, checkout.StatusProcessing, b.stored(c).Status)

	p.rejects(charged) // it has arrived
	answer, err = b.payAgain(p, c)
	require.Equal(t, checkout.StatusSucceeded, decode[checkout.Payment](t, answer, err).Status)
	b.requirePaidOnce(p, c)
}

func TestOldRefund_IsLookedUpBeforeItIsSent(t *testing.T) {
	t.Parallel()
	for _, age := range []time.Duration{2 * time.Hour, 24 * time.Hour} {
		b, p := setup(t), &provider{}
		payment, _ := b.eventOfLostRefund(p)
		b.begunAgo("refunds", age)
		sent := p.calls
		b.reconcile(b.impatient(p), 1)
		require.Equal(t, sent, p.calls)
		require.Equal(t, checkout.OrderRefunded, b.orderStatus(payment.OrderID))
		b.requireBooks()
	}
}

// TestProviderEvent_WithoutTheProvidersIDSettlesNothing: the payment could not be refunded.
func TestProviderEvent_WithoutTheProvidersIDSettlesNothing(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{}
	c := b.lostPayment(p, "k")
	e := chargeEvent("evt_1", b.stored(c))
	e.Result.ProviderID = ""
	b.requireVerdict(checkout.VerdictUnknown, e)
	require.Equal(t, checkout.StatusProcessing, b.stored(c).Status)
	b.requireVerdict(checkout.VerdictSettled, chargeEvent("evt_2", b.stored(c)))
	b.requirePaidOnce(p, c)
}

// TestPutProduct_IsNotRepeatedWhenTheReplyIsLost: an order may have taken stock in between.
func TestPutProduct_IsNotRepeatedWhenTheReplyIsLost(t *testing.T) {
	t.Parallel()
	b := setup(t)
	store, w := b.wired()
	put := func() error {
		_, err := store.PutProduct(b.ctx, b.keyless(), checkout.ProductWrite{SKU: "new", Name: "New", Price: usd(1), Stock: 9})
		return err
	}
	require.NoError(t, put()) // connected, and the statement is prepared
	w.cut(2, true)
	requireUnavailable(t, put())
	require.EqualValues(t, 9, b.stock("new"))
}

// TestPutProduct_IsNotExecutedWhenItsClientIsGone: a paused replica that comes back executes no
// older copy over a newer one.
func TestPutProduct_IsNotExecutedWhenItsClientIsGone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	conn, err := net.ListenUDP("udp", nil)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	ctx, call := arrival.WithConn(b.ctx, conn), b.keyless()
	_, err = b.PutProduct(ctx, call, checkout.ProductWrite{SKU: "tee-black", Name: "Old", Price: usd(1), Stock: 1})
	requireUnavailable(t, err)
	require.ErrorIs(t, err, authority.ErrAbandoned)
	_, err = b.UpdateCustomer(ctx, call, b.customer().ID, checkout.CustomerChange{})
	require.ErrorIs(t, err, authority.ErrAbandoned)
	require.EqualValues(t, plenty, b.stock("tee-black"))
}
