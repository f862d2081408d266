package postgres

import (
	"crypto/sha256"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/checkout"
)

func TestAnAPIKeyLeadsToItsAccountUntilItIsRevoked(t *testing.T) {
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

func TestPuttingAProductCreatesOrReplacesIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	product := checkout.Product{SKU: "cap", Name: "Cap", Price: usd(1500), Stock: 5}
	for _, wantCreated := range []bool{true, false} {
		stored, created, err := b.PutProduct(b.ctx, b.account, product)
		require.NoError(t, err)
		require.Equal(t, wantCreated, created)
		read, err := b.Product(b.ctx, b.account, "cap")
		require.NoError(t, err)
		require.Equal(t, stored, read)
		product.Stock = 7
	}
	require.EqualValues(t, 7, b.stock("cap"))

	first, err := b.Products(b.ctx, b.account, checkout.ProductPage{Limit: 2})
	require.NoError(t, err)
	rest, err := b.Products(b.ctx, b.account, checkout.ProductPage{After: first[1].SKU, Limit: 9})
	require.NoError(t, err)
	var skus []string
	for _, p := range append(first, rest...) {
		skus = append(skus, p.SKU)
	}
	require.Equal(t, []string{"cap", "limited-print", "mug-white", "sticker-pack", "tee-black"}, skus)
}

func TestTextThatCannotBeStoredIsTheClientsMistake(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, _, err := b.PutProduct(b.ctx, b.account, checkout.Product{SKU: "nul", Name: "a\x00b", Price: usd(1)})
	requireCode(t, "invalid_text", err)
	_, err = b.CreateCustomer(b.ctx, b.keyless(), checkout.NewCustomer{Name: "a\x00b", Email: "a@example.com"}, render)
	requireCode(t, "invalid_text", err)
	order := b.order(b.customer().ID, 1)
	_, err = b.UpdateOrder(b.ctx, b.keyless(), order.ID, checkout.OrderChange{ShippingAddress: &checkout.Address{City: "a\x00b"}}, render)
	requireCode(t, "invalid_text", err)
}

func TestACustomerChanges(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ada, bob := b.customer(), b.customer()
	name, email := "Ada L.", "ADA@example.com"
	reply, err := b.UpdateCustomer(b.ctx, b.keyless(), ada.ID, checkout.CustomerChange{Name: &name, Email: &email}, render)
	changed := decode[checkout.Customer](t, reply, err)
	require.Equal(t, name, changed.Name)
	stored, err := b.Customer(b.ctx, b.account, ada.ID)
	require.NoError(t, err)
	require.Equal(t, changed, stored)
	require.Equal(t, []string{"customer.created", "customer.updated"}, b.events(ada.ID))

	lower := "ada@example.com"
	_, err = b.UpdateCustomer(b.ctx, b.keyless(), bob.ID, checkout.CustomerChange{Email: &lower}, render)
	requireCode(t, "email_taken", err)
}

func TestAWalletIsToppedUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	customer := b.customer().ID
	inParallel(10, func(int) error {
		_, err := b.TopUp(b.ctx, b.keyless(), checkout.NewTopUp{CustomerID: customer, Amount: usd(100)}, render)
		return err
	})
	require.EqualValues(t, 1000, b.balance(customer))
	reply, err := b.TopUp(b.ctx, b.keyless(), checkout.NewTopUp{CustomerID: customer, Amount: usd(math.MaxInt64)}, render)
	requireRefused(t, "balance_too_large", reply, err)
	reply, err = b.TopUp(b.ctx, b.keyless(), checkout.NewTopUp{CustomerID: customer, Amount: checkout.Money{Amount: 1, Currency: "EUR"}}, render)
	requireRefused(t, "currency_mismatch", reply, err)
	require.Len(t, b.events(customer), 11)
	b.requireBooks()
}

func TestAnotherAccountsResourcesAreNotFound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	customer := b.customer().ID
	b.topUp(customer, 10_000)
	order := b.order(customer, 1)
	payment := b.pay(order, checkout.MethodWallet)
	before := b.count("outbox")
	foreign := checkout.Call{Account: b.other}
	withKey := b.call("k", nil)
	withKey.Account = b.other

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
	_, err = b.BeginCardPayment(b.ctx, withKey, checkout.NewPayment{OrderID: order.ID, Method: checkout.MethodCard}, render)
	requireCode(t, "order_not_found", err)
	_, err = b.RefundToWallet(b.ctx, foreign, checkout.NewRefund{PaymentID: payment.ID}, render)
	requireCode(t, "payment_not_found", err)
	_, err = b.BeginCardRefund(b.ctx, withKey, checkout.NewRefund{PaymentID: payment.ID}, render)
	requireCode(t, "payment_not_found", err)
	orders, err := b.Orders(b.ctx, b.other, checkout.OrderPage{Limit: 9})
	require.NoError(t, err)
	require.Empty(t, orders)
	require.Equal(t, before, b.count("outbox"))
	require.Zero(t, b.count("idempotency_keys WHERE account_id = $1", b.other))
}
