package postgres

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/checkout"
)

// lose deletes what a payment has begun, as a failover to an asynchronous standby does that lacks
// the commit: the payment, and its key if that is lost, too.
func (b *bundle) lose(c cardPayment, key bool) {
	b.t.Helper()
	b.exec("DELETE FROM payments WHERE order_id = $1", c.order.ID)
	b.exec("UPDATE orders SET status = 'pending' WHERE id = $1", c.order.ID)
	if key {
		b.exec("UPDATE idempotency_keys SET status = 'refused' WHERE key = $1", c.call.Claim.Key) // a key in progress is never deleted
		b.exec("DELETE FROM idempotency_keys WHERE key = $1", c.call.Claim.Key)
	}
}

// TestPayOrder_IsUnknownAfterLostCommits loses the begin of a payment while the provider is asked.
// Its client was charged, so it is never told that nothing was done, and gets no answer to another
// request.
func TestPayOrder_IsUnknownAfterLostCommits(t *testing.T) {
	t.Parallel()
	const theKeyStays = "the key stays"
	b := setup(t)
	payment := func(key string) cardPayment {
		order := b.order(b.customer().ID, 1)
		wanted := checkout.NewPayment{OrderID: order.ID, Method: checkout.MethodCard, Token: "tok_visa"}
		return cardPayment{order: order, wanted: wanted, call: b.call(key, wanted)}
	}
	for name, meanwhile := range map[string]func(p *provider, c cardPayment){
		theKeyStays:              func(*provider, cardPayment) {},
		"nothing":                func(*provider, cardPayment) {},
		"a retry begins anew":    func(_ *provider, c cardPayment) { b.resume(c) },
		"another request begins": func(_ *provider, c cardPayment) { b.resume(payment(c.call.Claim.Key)) },
		"another request is answered": func(p *provider, c cardPayment) {
			_, err := b.payAgain(p, payment(c.call.Claim.Key))
			require.NoError(t, err)
		},
		"another request's answer has expired": func(p *provider, c cardPayment) {
			other := payment(c.call.Claim.Key)
			other.call.Claim.TombstoneTTL = tombstoneTTL
			_, err := b.payAgain(p, other)
			require.NoError(t, err)
			b.keepUntil(c.call.Claim.Key, -time.Second)
		},
	} {
		for _, says := range []checkout.GatewayResult{approved, noAnswer} {
			p, c := &provider{}, payment(newID().String())
			p.answers = func(call int, answer checkout.GatewayResult) checkout.GatewayResult {
				if call > 1 {
					return answer
				}
				b.lose(c, name != theKeyStays)
				meanwhile(p, c)
				return says
			}
			answer, err := b.payAgain(p, c)
			var domain *checkout.Error
			require.ErrorAs(t, err, &domain, "%s, %s: %s", name, says.Outcome, contentOf(answer).Body)
			if !errors.Is(err, checkout.ErrKeyInProgress) || name != "a retry begins anew" {
				require.Equal(t, checkout.KindUnavailable, domain.Kind, "%s, %s: %s", name, says.Outcome, err)
			}
		}
	}
}

// TestFence_NamesThePayment: after lost commits the retry's payment is settled by its own attempt.
func TestFence_NamesThePayment(t *testing.T) {
	t.Parallel()
	b, p := setup(t), &provider{}
	c := b.beginCardPayment("k")
	stale := c.begun
	b.lose(c, true)
	c.begun = b.resume(c)
	require.Equal(t, stale.Call.Claim.Attempt, c.begun.Call.Claim.Attempt)
	_, err := b.CardPayments().Settle(b.ctx, stale, declined)
	require.ErrorIs(t, err, checkout.ErrKeyInProgress)
	require.NoError(t, b.CardPayments().PutOff(b.ctx, stale, "at-stale", 0))
	require.Equal(t, 1, b.count("idempotency_keys WHERE key = 'k' AND due_at IS NULL"))
	b.reconcile(b.impatient(p), 1)
	b.requirePaidOnce(p, c)
}
