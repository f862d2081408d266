package postgres

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/internal/checkout"
)

// TestConstraints_EnforceTheRules breaks each rule behind the store's back.
func TestConstraints_EnforceTheRules(t *testing.T) {
	t.Parallel()
	b := setup(t)
	customer := b.customer().ID
	b.topUp(customer, 5000)
	b.pay(b.order(customer, 1), checkout.MethodWallet)
	b.beginCardPayment("k")
	for _, rule := range []struct{ constraint, breakIt string }{
		{"products_stock_not_negative", "UPDATE products SET stock = -1"},
		{"version_counted", "UPDATE products SET stock = 1"},
		{"wallets_balance_not_negative", "UPDATE wallets SET balance = -1"},
		{"orders_status", "UPDATE orders SET status = 'lost'"},
		{"payments_status", "UPDATE payments SET status = 'lost'"},
		{"payments_method", "UPDATE payments SET method = 'cash' WHERE status = 'processing'"},
		{"payments_refunded", "UPDATE payments SET refunded = amount + 1 WHERE status = 'succeeded'"},
		{"payments_refunded_only_if_paid", "UPDATE payments SET refunded = 1 WHERE status = 'processing'"},
		{"payments_wallet_settles_at_once", "UPDATE payments SET status = 'processing' WHERE method = 'wallet'"},
		{"payments_live", `INSERT INTO payments SELECT gen_random_uuid(), account_id, order_id, customer_id, method, token, amount,
			currency, refunded, status, decline_code, provider_id, created_at, updated_at FROM payments`},
		{"customers_email", `INSERT INTO customers SELECT gen_random_uuid(), account_id, name, upper(email), created_at, updated_at FROM customers`},
		{"idempotency_keys_status", "UPDATE idempotency_keys SET status = 'lost'"},
		{"idempotency_keys_finished_has_response", "UPDATE idempotency_keys SET status = 'completed' WHERE status = 'in_progress'"},
		{"idempotency_keys_pkey", "INSERT INTO idempotency_keys SELECT * FROM idempotency_keys"},
		{"top_ups_account_id_customer_id_fkey", "UPDATE top_ups SET account_id = '" + b.other.String() + "'"},
		{"ledger_transactions_subject_key", "INSERT INTO ledger_transactions SELECT gen_random_uuid(), account_id, kind, subject FROM ledger_transactions"},
		{"ledger_entries_balanced", "INSERT INTO ledger_entries SELECT id, 9, 'sales', 1, 'USD' FROM ledger_transactions"},
	} {
		_, err := b.pool.Exec(b.ctx, rule.breakIt)
		var refused *pgconn.PgError
		require.ErrorAs(t, err, &refused, rule.breakIt)
		require.Equal(t, rule.constraint, refused.ConstraintName, "%s: %v", rule.breakIt, err)
	}
	for _, table := range []string{"orders", "products"} {
		_, err := b.pool.Exec(b.ctx, "DELETE FROM "+table)
		require.ErrorContains(t, err, table+" are never deleted")
	}
	_, err := b.pool.Exec(b.ctx, "DELETE FROM idempotency_keys")
	require.ErrorContains(t, err, "a key in progress is never deleted")
	b.requireBooks()
}

func TestLedger_UnbalancedMovementIsNotCommitted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	call := b.call("k", nil)
	answer, err := once(b.ctx, b.Store, call, func(context.Context, *transaction) decision[string] {
		return func() (string, checkout.Changes, *checkout.Error) {
			theft := checkout.LedgerTransaction{Kind: "theft", Subject: newID(), Entries: []checkout.LedgerEntry{
				{Account: "sales", Amount: usd(-1)}, {Account: "mine", Amount: usd(2)}}}
			return "done", checkout.Changes{Ledger: []checkout.LedgerTransaction{theft}}, nil
		}
	})
	var refused *pgconn.PgError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "ledger_entries_balanced", refused.ConstraintName)
	require.Zero(t, answer)
	require.Zero(t, b.count("ledger_transactions"))
	require.Zero(t, b.count("idempotency_keys"))
}
