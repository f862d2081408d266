package postgres

import (
	"crypto/sha256"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/checkout"
)

func TestAccountByKeyHash_FindsUntilRevoked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	account, err := b.AccountByKeyHash(b.ctx, sha256.Sum256([]byte("sk_test_demo")))
	require.NoError(t, err)
	require.Equal(t, checkout.Account{ID: b.account, Name: "Demo"}, account)
	_, err = b.AccountByKeyHash(b.ctx, sha256.Sum256([]byte("sk_test_nobody")))
	require.ErrorIs(t, err, checkout.ErrUnauthorized)

	_, err = b.pool.Exec(b.ctx, "UPDATE api_keys SET revoked_at = now() WHERE account_id = $1", b.account)
	require.NoError(t, err)
	_, err = b.AccountByKeyHash(b.ctx, sha256.Sum256([]byte("sk_test_demo")))
	require.ErrorIs(t, err, checkout.ErrUnauthorized)
}

func TestStore_HidesOtherAccounts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	customer := b.customer().ID
	b.topUp(customer, 10_000)
	order := b.order(customer, 1)
	payment := b.pay(order, checkout.MethodWallet)
	before := b.count("outbox")
	foreign := checkout.Call{Account: b.other}
	withKey := func() checkout.Call {
		call := b.call("k", nil)
		call.Account = b.other
		return call
	}

	_, err := b.Product(b.ctx, newID(), "tee-black")
	requireCode(t, "product_not_found", err)
	_, err = b.Customer(b.ctx, b.other, customer)
	requireCode(t, "customer_not_found", err)
	_, err = b.Wallet(b.ctx, b.other, customer)
	requireCode(t, "customer_not_found", err)
	_, err = b.Order(b.ctx, b.other, order.ID)
	requireCode(t, "order_not_found", err)
	_, err = b.Payment(b.ctx, b.other, payment.ID)
	requireCode(t, "payment_not_found", err)
	_, err = b.UpdateCustomer(b.ctx, foreign, customer, checkout.CustomerChange{}, render)
	requireCode(t, "customer_not_found", err)
	_, err = b.TopUp(b.ctx, foreign, checkout.NewTopUp{CustomerID: customer, Amount: usd(1)}, render)
	requireCode(t, "customer_not_found", err)
	_, err = b.PlaceOrder(b.ctx, foreign, wants(customer, "tee-black", 1), render)
	requireCode(t, "customer_not_found", err)
	_, err = b.UpdateOrder(b.ctx, foreign, order.ID, checkout.OrderChange{Cancel: true}, render)
	requireCode(t, "order_not_found", err)
	_, err = b.PayFromWallet(b.ctx, foreign, checkout.NewPayment{OrderID: order.ID, Method: checkout.MethodWallet}, render)
	requireCode(t, "order_not_found", err)
	_, err = b.CardPayments().Begin(b.ctx, withKey(), checkout.NewPayment{OrderID: order.ID, Method: checkout.MethodCard}, render)
	requireCode(t, "order_not_found", err)
	_, err = b.RefundToWallet(b.ctx, foreign, checkout.NewRefund{PaymentID: payment.ID}, render)
	requireCode(t, "payment_not_found", err)
	_, err = b.CardRefunds().Begin(b.ctx, withKey(), checkout.NewRefund{PaymentID: payment.ID}, render)
	requireCode(t, "payment_not_found", err)
	orders, err := b.Orders(b.ctx, b.other, checkout.OrderPage{Limit: 9})
	require.NoError(t, err)
	require.Empty(t, orders)
	require.Equal(t, before, b.count("outbox"))
	require.Zero(t, b.count("idempotency_keys WHERE account_id = $1 AND status <> 'refused'", b.other))
}
