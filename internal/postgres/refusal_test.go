package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/internal/checkout"
)

// attempts returns two attempts with one key, the second of which began later.
func (b *bundle) attempts(key string, request any) (older, newer checkout.Call) {
	older, newer = b.call(key, request), b.call(key, request)
	older.Claim.ArrivedAt = newer.Claim.ArrivedAt.Add(-time.Second)
	return older, newer
}

// refusals are requests that are refused, with what makes the next one succeed.
func (b *bundle) refusals() map[string]struct {
	run    func(checkout.Call) (checkout.Answer, error)
	code   string
	repair func()
} {
	type refusal = struct {
		run    func(checkout.Call) (checkout.Answer, error)
		code   string
		repair func()
	}
	customer, taken := b.customer().ID, b.customer()
	b.topUp(customer, 5000)
	paying := b.beginCardPayment("paying")
	busy := b.beginCardPayment("busy")
	b.topUp(busy.order.CustomerID, 5000)
	return map[string]refusal{
		"unknown product": {func(call checkout.Call) (checkout.Answer, error) {
			return b.PlaceOrder(b.ctx, call, wants(customer, "new-sku", 1))
		}, "unknown_product", func() {
			_, err := b.PutProduct(b.ctx, b.keyless(), checkout.ProductWrite{SKU: "new-sku", Name: "New", Price: usd(1), Stock: 9})
			require.NoError(b.t, err)
		}},
		"product not found": {func(call checkout.Call) (checkout.Answer, error) {
			return b.UpdateProduct(b.ctx, call, "later", checkout.ProductChange{StockChange: 5})
		}, "product_not_found", func() {
			_, err := b.PutProduct(b.ctx, b.keyless(), checkout.ProductWrite{SKU: "later", Name: "Later", Price: usd(1)})
			require.NoError(b.t, err)
		}},
		"taken e-mail address": {func(call checkout.Call) (checkout.Answer, error) {
			return b.CreateCustomer(b.ctx, call, checkout.NewCustomer{Name: "Eve", Email: taken.Email})
		}, "email_taken", func() {
			free := newID().String() + "@example.com"
			_, err := b.UpdateCustomer(b.ctx, b.keyless(), taken.ID, checkout.CustomerChange{Email: &free})
			require.NoError(b.t, err)
		}},
		"order being paid": {func(call checkout.Call) (checkout.Answer, error) {
			return b.PayFromWallet(b.ctx, call, checkout.NewPayment{OrderID: busy.order.ID, Method: checkout.MethodWallet})
		}, "order_being_paid", func() {
			_, err := b.CardPayments().Settle(b.ctx, busy.begun, declined)
			require.NoError(b.t, err)
		}},
		"payment processing": {func(call checkout.Call) (checkout.Answer, error) {
			begun, err := b.CardRefunds().Begin(b.ctx, call, checkout.NewRefund{PaymentID: paying.begun.Value.ID})
			switch {
			case err != nil:
				return checkout.Answer{}, err
			case begun.Answer != nil:
				return *begun.Answer, nil
			}
			return b.CardRefunds().Settle(b.ctx, begun.Taken, approved)
		}, "payment_processing", func() {
			_, err := b.CardPayments().Settle(b.ctx, paying.begun, approved)
			require.NoError(b.t, err)
		}},
	}
}

// TestRefusal_StopsOlderCopies is issue 9's scenario: a copy of the request waits at a paused
// replica, another copy is refused, the cause of the refusal goes away, and the replica resumes.
func TestRefusal_StopsOlderCopies(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, c := range b.refusals() {
		copies, newer := b.attempts(name, name) // all copies that a proxy makes have one time
		_, err := c.run(copies)
		requireCode(t, c.code, err)
		c.repair()
		for range 2 {
			_, err = c.run(copies)
			requireCode(t, "newer_attempt_refused", err)
		}
		answer, err := c.run(newer)
		require.NoError(t, err, name)
		require.Equal(t, 201, contentOf(answer).Status, name)
		require.False(t, answer.Replayed, name)
		again, err := c.run(copies)
		require.NoError(t, err, name)
		require.True(t, again.Replayed, "the older copy gets the newer one's answer")
		require.Equal(t, contentOf(answer).Body, contentOf(again).Body, name)
	}
	require.EqualValues(t, 5, b.stock("later"))
	b.requireBooks()
}

// TestRefusal_LeavesTheKeyToACorrectedRequest takes another body under the same key.
func TestRefusal_LeavesTheKeyToACorrectedRequest(t *testing.T) {
	t.Parallel()
	b := setup(t)
	customer := b.customer().ID
	_, err := b.PlaceOrder(b.ctx, b.call("k", "typo"), wants(customer, "tea-black", 1))
	requireCode(t, "unknown_product", err)
	_, err = b.Key(b.ctx, b.account, "k")
	require.ErrorIs(t, err, checkout.ErrKeyNotFound)
	answer, err := b.PlaceOrder(b.ctx, b.call("k", "corrected"), wants(customer, "tee-black", 1))
	require.NoError(t, err)
	require.Equal(t, 201, contentOf(answer).Status)
	known, err := b.Key(b.ctx, b.account, "k")
	require.NoError(t, err)
	require.Equal(t, checkout.KeyCompleted, known.State)
}

// TestRefusal_StandsWhenTheNextAttemptFails rolls back the attempt that claimed a refused key.
func TestRefusal_StandsWhenTheNextAttemptFails(t *testing.T) {
	t.Parallel()
	b := setup(t)
	older, newer := b.attempts("k", 1)
	wanted := wants(b.customer().ID, "no-such", 1)
	_, err := b.PlaceOrder(b.ctx, older, wanted)
	requireCode(t, "unknown_product", err)
	_, err = once(b.ctx, b.Store, newer, func(context.Context, *transaction) decision[checkout.Order] {
		return func() (checkout.Order, checkout.Changes, *checkout.Error) {
			return checkout.Order{}, checkout.Changes{}, checkout.Unavailable("test", context.DeadlineExceeded)
		}
	})
	requireCode(t, "service_unavailable", err)
	_, err = b.PlaceOrder(b.ctx, older, wanted)
	requireCode(t, "newer_attempt_refused", err)
}

func TestRefusal_OfAnAddressTakenMeanwhileIsFoundAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const n = 8
	wanted := checkout.NewCustomer{Name: "Eve", Email: "eve@example.com"}
	answers := inParallel(n, func(int) result {
		return resultOf(b.CreateCustomer(b.ctx, b.call(newID().String(), 1), wanted))
	})
	require.Equal(t, map[string]int{"": 1, "email_taken": n - 1}, tally(answers))
	require.Equal(t, n-1, b.count("idempotency_keys WHERE status = 'refused'"))
}

// TestClaim_IsNotForAnAttemptOfAnotherTime: the refusal that would stop an older one may be purged,
// and that of one from the future would be purged before its copies are too old. So nothing is
// claimed, either, while the database's clock is off.
func TestClaim_IsNotForAnAttemptOfAnotherTime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	customer := b.customer().ID
	for _, off := range []time.Duration{-checkout.MaxRequestAge - time.Minute, checkout.MaxRequestAge + time.Minute} {
		call := b.call("k", 1)
		call.Claim.ArrivedAt = time.Now().Add(off)
		_, err := b.PlaceOrder(b.ctx, call, wants(customer, "tee-black", 1))
		requireUnavailable(t, err)
		require.ErrorIs(t, err, idempotency.ErrUnavailable)
		require.Zero(t, b.count("orders"))
	}
	answer, err := b.PlaceOrder(b.ctx, b.call("k", 1), wants(customer, "tee-black", 1))
	require.NoError(t, err)
	require.False(t, answer.Replayed)
}

func TestRefusal_IsPurgedAfterNoOlderAttemptCanCome(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.PlaceOrder(b.ctx, b.call("k", 1), wants(b.customer().ID, "no-such", 1))
	requireCode(t, "unknown_product", err)
	require.Equal(t, 1, b.count("idempotency_keys WHERE expires_at = created_at + $1::interval", 2*checkout.MaxRequestAge))
	b.purge(10, 0)
	b.keepUntil("k", -time.Second)
	b.purge(10, 1)
	require.Zero(t, b.count("idempotency_keys"))
}
