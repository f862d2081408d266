package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/checkout"
)

// Handlers, retries and reconcilers compete for one payment: only the newest attempt settles.

func TestFence_HoldsBetweenRetriesAndReconcilers(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{}
	for range 10 {
		c := b.lostPayment(p, newID().String())
		answers := inParallel(8, func(i int) result {
			if i%2 == 0 {
				return resultOf(b.payAgain(p, c))
			}
			_, err := b.impatient(p).RunOnce(b.ctx)
			return result{err: err}
		})
		final, err := b.payAgain(p, c)
		require.NoError(t, err)
		for i, a := range answers {
			switch {
			case i%2 == 1:
				require.NoError(t, a.err)
			case a.err != nil:
				require.ErrorIs(t, a.err, checkout.ErrKeyInProgress)
			default:
				require.Equal(t, string(contentOf(final).Body), string(contentOf(a.answer).Body))
			}
		}
		b.requirePaidOnce(p, c)
	}
	require.Len(t, p.moved, 10)
}

// TestReconciler_GivesARetryItsGrace puts a payment off, and lets the client come back before:
// while its attempt may be under way, the grace counts.
func TestReconciler_GivesARetryItsGrace(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{}
	c := b.lostPayment(p, "k")
	p.silent = 1
	b.reconcile(b.reconciler(p, checkout.ReconcilerOptions{Grace: noGrace, Backoff: time.Millisecond, MaxBackoff: time.Millisecond}), 0)
	require.EqualValues(t, 3, b.resume(c).Call.Claim.Attempt)
	b.age("payments", time.Second)
	b.reconcile(b.reconciler(p, checkout.ReconcilerOptions{}), 0)
	require.Equal(t, 2, p.calls)
}

// TestReconciler_DoesNotTakeWhatAnotherAsks lets a second one look for work while the first asks
// about a payment that had been put off.
func TestReconciler_DoesNotTakeWhatAnotherAsks(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{}
	c := b.lostPayment(p, "k")
	options := checkout.ReconcilerOptions{Backoff: time.Millisecond, MaxBackoff: time.Millisecond}
	p.silent = 1
	b.age("payments", 30*time.Minute)
	b.reconcile(b.reconciler(p, options), 0)
	b.age("payments", time.Second)
	p.answers = func(call int, answer checkout.GatewayResult) checkout.GatewayResult {
		if call == 3 {
			b.reconcile(b.reconciler(p, options), 0)
		}
		return answer
	}
	b.reconcile(b.reconciler(p, options), 1)
	require.Equal(t, 3, p.calls)
	b.requirePaidOnce(p, c)
}

// TestPutOff_IsForTheNewestAttempt lets a client take the next attempt while the reconciler waits
// for the provider in vain.
func TestPutOff_IsForTheNewestAttempt(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{}
	c := b.lostPayment(p, "k")
	p.answers = func(int, checkout.GatewayResult) checkout.GatewayResult {
		b.resume(c)
		return noAnswer
	}
	b.reconcile(b.impatient(p), 0)
	require.Equal(t, 1, b.count("idempotency_keys WHERE attempt = 3 AND due_at IS NULL"))
}

// TestPutOff_KeepsTheProvidersID of a payment and of a refund whose outcome is unknown. What the
// provider has is then looked up, and not sent again.
func TestPutOff_KeepsTheProvidersID(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{}
	named := func(_ int, answer checkout.GatewayResult) checkout.GatewayResult {
		return checkout.GatewayResult{Outcome: checkout.OutcomeUnknown, ProviderID: answer.ProviderID, Cause: noAnswer.Cause}
	}
	p.answers = named
	order := b.order(b.customer().ID, 1)
	wanted := checkout.NewPayment{OrderID: order.ID, Method: checkout.MethodCard, Token: "tok_visa"}
	c := cardPayment{order: order, wanted: wanted, call: b.call("k", wanted)}
	_, err := b.payAgain(p, c)
	requireCode(t, "payment_outcome_unknown", err)
	require.Equal(t, 1, b.count("payments WHERE status = 'processing' AND provider_id = 'at-payment-' || id"))
	answer, err := b.payAgain(p, c)
	payment := decode[checkout.Payment](t, answer, err)
	require.Equal(t, "at-payment-"+payment.ID.String(), payment.ProviderID)

	refund := checkout.NewRefund{PaymentID: payment.ID}
	again := func() (checkout.Answer, error) {
		return checkout.NewService(b.Store, p).Refund(b.ctx, b.call("r", refund), refund)
	}
	_, err = again()
	requireCode(t, "refund_outcome_unknown", err)
	require.Equal(t, 1, b.count("refunds WHERE status = 'processing' AND provider_id = 'at-refund-' || id"))
	b.age("refunds", time.Hour)
	b.reconcile(b.impatient(p), 1)
	answer, err = again()
	require.NoError(t, err)
	require.True(t, answer.Replayed)
	require.Equal(t, 2, p.calls, "one for the payment, one for the refund")
}

// TestFence_StopsAPausedHandler stops a handler between the provider's answer and its settlement,
// and a reconciler takes over meanwhile.
func TestFence_StopsAPausedHandler(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{}
	order := b.order(b.customer().ID, 1)
	wanted := checkout.NewPayment{OrderID: order.ID, Method: checkout.MethodCard, Token: "tok_visa"}
	c := cardPayment{order: order, wanted: wanted, call: b.call("k", wanted)}
	paused, resumed := make(chan struct{}), make(chan struct{})
	p.answers = func(call int, answer checkout.GatewayResult) checkout.GatewayResult {
		if call == 1 {
			close(paused)
			<-resumed
			return declined // so that it would be seen if it settled
		}
		return answer
	}
	handler := make(chan result, 1)
	go func() { handler <- resultOf(b.payAgain(p, c)) }()
	<-paused
	b.reconcile(b.impatient(p), 1)
	close(resumed)
	late := <-handler
	require.NoError(t, late.err)
	require.True(t, late.answer.Replayed)
	c.begun.Value = decode[checkout.Payment](t, late.answer, late.err)
	require.Equal(t, checkout.StatusSucceeded, c.begun.Value.Status)
	b.requirePaidOnce(p, c)
}

// TestFence_SettlesOnceWhenTheHandlerIsFirst lets it settle before the reconciler that has
// overtaken it.
func TestFence_SettlesOnceWhenTheHandlerIsFirst(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{}
	c := b.beginCardPayment("k")
	p.answers = func(_ int, answer checkout.GatewayResult) checkout.GatewayResult {
		_, err := b.CardPayments().Settle(b.ctx, c.begun, declined)
		require.ErrorIs(t, err, checkout.ErrKeyInProgress)
		require.Equal(t, checkout.OrderPaying, b.orderStatus(c.order.ID))
		return answer
	}
	b.reconcile(b.impatient(p), 1)
	b.requirePaidOnce(p, c)
}

// TestFence_StopsAnOvertakenReconciler lets the client's retry settle while the reconciler waits
// for the provider.
func TestFence_StopsAnOvertakenReconciler(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{}
	c := b.lostPayment(p, "k")
	p.answers = func(call int, answer checkout.GatewayResult) checkout.GatewayResult {
		if call == 2 {
			_, err := b.payAgain(p, c)
			require.NoError(t, err)
			return declined
		}
		return answer
	}
	r := b.impatient(p)
	b.reconcile(r, 0)
	stats, err := r.Stats(b.ctx)
	require.NoError(t, err)
	require.Equal(t, checkout.ReconcilerStats{Overtaken: 1}, stats)
	b.requirePaidOnce(p, c)
}

// TestReconciler_LeavesTheRestToOthersWhenStopped stops one that has taken an attempt and asked. It
// writes down what it learned; what it did not learn is due for the others.
func TestReconciler_LeavesTheRestToOthersWhenStopped(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{}
	answered, unanswered := b.lostPayment(p, "answered"), b.lostPayment(p, "unanswered")
	ctx, cancel := context.WithCancel(b.ctx)
	p.answers = func(_ int, answer checkout.GatewayResult) checkout.GatewayResult {
		cancel()
		if answer.ProviderID == "at-payment-"+unanswered.begun.Value.ID.String() {
			return noAnswer
		}
		return answer
	}
	options := checkout.ReconcilerOptions{Grace: time.Minute, Backoff: time.Millisecond, MaxBackoff: time.Millisecond}
	b.age("payments", 30*time.Minute)
	n, err := b.reconciler(p, options).RunOnce(ctx)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	b.requirePaidOnce(p, answered)
	p.answers = nil
	b.age("payments", time.Second)
	b.reconcile(b.reconciler(p, options), 1)
	b.requirePaidOnce(p, unanswered)
}
