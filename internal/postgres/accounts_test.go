package postgres

import (
	"crypto/sha256"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/access"
	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

// keys are the API keys that may be used, and of which the test knows the text.
func (b *bundle) keys(limit int) map[string]access.Key {
	b.t.Helper()
	names := map[access.Hash]string{}
	for _, name := range []string{"sk_test_demo", "sk_test_other", "reader", "late", "early"} {
		names[access.HashOf(name)] = name
	}
	found := map[string]access.Key{}
	for after := (access.Hash{}); ; {
		page, err := b.APIKeys(b.ctx, after, limit)
		require.NoError(b.t, err)
		require.LessOrEqual(b.t, len(page), limit)
		for _, k := range page {
			if !k.Ended {
				found[names[k.Hash]] = k.Key
			}
			after = k.Hash
		}
		if len(page) < limit {
			return found
		}
	}
}

func TestAPIKeys_AreThoseThatMayBeUsed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	late := time.Now().Add(time.Hour).UTC()
	issue := func(name string, readOnly bool, expires *time.Time) {
		hash := access.HashOf(name)
		_, err := b.pool.Exec(b.ctx, "INSERT INTO api_keys (hash, account_id, read_only, expires_at) VALUES ($1, $2, $3, $4)", hash[:], b.account, readOnly, expires)
		require.NoError(t, err)
	}
	issue("reader", true, nil)
	issue("late", false, &late)
	early := time.Now().Add(-time.Hour)
	issue("early", false, &early)
	want := map[string]access.Key{
		"sk_test_demo": access.NewKey(b.account, false, false, nil), "sk_test_other": access.NewKey(b.other, false, false, nil),
		"reader": access.NewKey(b.account, true, false, nil), "late": access.NewKey(b.account, false, false, &late),
	}
	require.Equal(t, want, b.keys(2), "on several pages")

	b.exec("UPDATE api_keys SET revoked_at = now() WHERE account_id = $1", b.account)
	b.exec("UPDATE accounts SET suspended_at = now() WHERE id = $1", b.other)
	require.Equal(t, map[string]access.Key{"sk_test_other": access.NewKey(b.other, false, true, nil)}, b.keys(9))
}

// TestAPIKeys_ReadNoRowTwice: a page reads its own rows only, even if the table has no statistics.
// A replica reads all pages after each change.
func TestAPIKeys_ReadNoRowTwice(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const pageSize = 100
	b.exec("INSERT INTO api_keys (hash, account_id) SELECT sha256(n::text::bytea), $1 FROM generate_series(1, 10000) n", b.account)
	require.NoError(t, pgx.BeginFunc(b.ctx, b.pool, func(tx pgx.Tx) error {
		page, err := dbsqlc.New(tx).APIKeys(b.ctx, dbsqlc.APIKeysParams{After: make([]byte, sha256.Size), PageSize: pageSize})
		require.NoError(t, err)
		require.Len(t, page, pageSize)
		var rows int
		require.NoError(t, tx.QueryRow(b.ctx, "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'api_keys'").Scan(&rows))
		require.Equal(t, pageSize, rows)
		return nil
	}))
}

func TestAPIKeys_HaveAnotherVersionAfterEachChange(t *testing.T) {
	t.Parallel()
	b := setup(t)
	seen := map[uuid.UUID]bool{}
	for _, change := range []string{
		"INSERT INTO api_keys (hash, account_id) SELECT sha256('new'), id FROM accounts LIMIT 1",
		"UPDATE api_keys SET revoked_at = now() WHERE hash = sha256('new')",
		"UPDATE accounts SET suspended_at = now()",
		"UPDATE accounts SET suspended_at = NULL",
		"DELETE FROM api_keys WHERE hash = sha256('new')",
		"TRUNCATE api_keys",
	} {
		b.exec(change)
		version, err := b.APIKeysVersion(b.ctx)
		require.NoError(t, err)
		require.False(t, seen[version], change)
		seen[version] = true
		again, err := b.APIKeysVersion(b.ctx)
		require.NoError(t, err)
		require.Equal(t, version, again)
	}
}

func TestStore_HidesOtherAccounts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	customer := b.customer().ID
	b.topUp(customer, 10_000)
	order := b.order(customer, 1)
	payment := b.pay(order, checkout.MethodWallet)
	_, err := b.RefundToWallet(b.ctx, b.keyless(), checkout.NewRefund{PaymentID: payment.ID})
	require.NoError(t, err)
	before := b.count("outbox")
	foreign := checkout.Call{Account: b.other, Encode: encode}
	withKey := func() checkout.Call {
		call := b.call("k", nil)
		call.Account = b.other
		return call
	}

	_, err = b.Product(b.ctx, newID(), "tee-black")
	requireCode(t, "product_not_found", err)
	_, err = b.Customer(b.ctx, b.other, customer)
	requireCode(t, "customer_not_found", err)
	_, err = b.Wallet(b.ctx, b.other, customer)
	requireCode(t, "customer_not_found", err)
	_, err = b.Order(b.ctx, b.other, order.ID)
	requireCode(t, "order_not_found", err)
	_, err = b.Payment(b.ctx, b.other, payment.ID)
	requireCode(t, "payment_not_found", err)
	_, err = b.UpdateCustomer(b.ctx, foreign, customer, checkout.CustomerChange{})
	requireCode(t, "customer_not_found", err)
	_, err = b.TopUp(b.ctx, foreign, checkout.NewTopUp{CustomerID: customer, Amount: usd(1)})
	requireCode(t, "customer_not_found", err)
	_, err = b.PlaceOrder(b.ctx, foreign, wants(customer, "tee-black", 1))
	requireCode(t, "customer_not_found", err)
	_, err = b.UpdateOrder(b.ctx, foreign, order.ID, checkout.OrderChange{Cancel: true})
	requireCode(t, "order_not_found", err)
	_, err = b.PayFromWallet(b.ctx, foreign, checkout.NewPayment{OrderID: order.ID, Method: checkout.MethodWallet})
	requireCode(t, "order_not_found", err)
	_, err = b.CardPayments().Begin(b.ctx, withKey(), checkout.NewPayment{OrderID: order.ID, Method: checkout.MethodCard})
	requireCode(t, "order_not_found", err)
	_, err = b.RefundToWallet(b.ctx, foreign, checkout.NewRefund{PaymentID: payment.ID})
	requireCode(t, "payment_not_found", err)
	_, err = b.CardRefunds().Begin(b.ctx, withKey(), checkout.NewRefund{PaymentID: payment.ID})
	requireCode(t, "payment_not_found", err)
	_, err = b.Payments(b.ctx, b.other, order.ID, checkout.Page{Limit: 9})
	requireCode(t, "order_not_found", err)
	_, err = b.Refunds(b.ctx, b.other, payment.ID, checkout.Page{Limit: 9})
	requireCode(t, "payment_not_found", err)
	orders, err := b.Orders(b.ctx, b.other, checkout.OrderPage{Limit: 9})
	require.NoError(t, err)
	require.Empty(t, orders)
	products, err := b.Products(b.ctx, newID(), checkout.ProductPage{Limit: 9})
	require.NoError(t, err)
	require.Empty(t, products)
	require.Equal(t, before, b.count("outbox"))
	require.Zero(t, b.count("idempotency_keys WHERE account_id = $1 AND status <> 'refused'", b.other))
}

// TestStore_KeepsNamesOfAccountsApart: both have a product of one SKU, and a customer of one
// address.
func TestStore_KeepsNamesOfAccountsApart(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const sku = "tee-black"
	for i, account := range []uuid.UUID{b.account, b.other} {
		call := checkout.Call{Account: account, Encode: encode}
		answer, err := b.PutProduct(b.ctx, call, checkout.ProductWrite{SKU: sku, Name: "Tee", Price: usd(int64(100 * (i + 1))), Stock: 10})
		require.EqualValues(t, 10, decode[checkout.Product](t, answer, err).Stock)
		answer, err = b.CreateCustomer(b.ctx, call, checkout.NewCustomer{Name: "Ada", Email: "ada@example.com"})
		require.NotEmpty(t, decode[checkout.Customer](t, answer, err))
	}
	for i, account := range []uuid.UUID{b.account, b.other} {
		foreign, err := b.Product(b.ctx, []uuid.UUID{b.other, b.account}[i], sku)
		require.NoError(t, err)
		call := checkout.Call{Account: account, Encode: encode}
		answer, err := b.CreateCustomer(b.ctx, call, checkout.NewCustomer{Name: "Ada", Email: newID().String() + "@example.com"})
		customer := decode[checkout.Customer](t, answer, err).ID

		answer, err = b.PlaceOrder(b.ctx, call, wants(customer, sku, 2))
		order := decode[checkout.Order](t, answer, err)
		require.EqualValues(t, 200*(i+1), order.Total.Amount, "of its own price")
		_, err = b.PlaceOrder(b.ctx, call, wants(customer, sku, 1))
		require.NoError(t, err)
		_, err = b.UpdateOrder(b.ctx, call, order.ID, checkout.OrderChange{Cancel: true})
		require.NoError(t, err)
		answer, err = b.UpdateProduct(b.ctx, call, sku, checkout.ProductChange{StockChange: 5})
		require.EqualValues(t, 14, decode[checkout.Product](t, answer, err).Stock)

		own, err := b.Product(b.ctx, account, sku)
		require.NoError(t, err)
		require.EqualValues(t, 14, own.Stock)
		after, err := b.Product(b.ctx, []uuid.UUID{b.other, b.account}[i], sku)
		require.NoError(t, err)
		require.Equal(t, foreign, after)
	}
}
