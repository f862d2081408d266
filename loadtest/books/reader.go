package books

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Reader reads the Books from the stores themselves.
type Reader struct {
	DatabaseURL, RedisAddr, ProviderURL string
	MailsURL                            string                      // of the mail sink; empty: mails are not read
	APIKeys                             []string                    // of the accounts that the campaign uses
	Opening                             map[string]map[string]int64 // stock at the beginning, by API key and SKU
	Lost                                []Stream                    // the streams that Redis has lost, as they were before
	Since                               time.Time                   // the last loss, or the campaign's beginning
}

// Read collects the books in one snapshot of the database, and the rest right after.
func (r Reader) Read(ctx context.Context) (b Books, err error) {
	conn, err := pgx.Connect(ctx, r.DatabaseURL)
	if err != nil {
		return b, fmt.Errorf("open the books: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		s := &snapshot{tx: tx}
		r.tables(ctx, s, &b)
		return s.err
	})
	if err != nil {
		return b, fmt.Errorf("read the books: %w", err)
	}
	if b.Charges, err = providerList(ctx, r.ProviderURL, "charges"); err != nil {
		return b, err
	}
	if b.ProviderRefunds, err = providerList(ctx, r.ProviderURL, "refunds"); err != nil {
		return b, err
	}
	if r.MailsURL != "" {
		if b.Mails, err = mails(ctx, r.MailsURL); err != nil {
			return b, err
		}
	}
	return b, r.redis(ctx, &b)
}

// tables reads what PostgreSQL holds.
func (r Reader) tables(ctx context.Context, s *snapshot, b *Books) {
	names := map[string]string{} // API keys by account
	accounts := byID[string](ctx, s, `SELECT encode(hash, 'hex'), account_id::text FROM api_keys`)
	for _, key := range r.APIKeys {
		account, known := accounts[fmt.Sprintf("%x", sha256.Sum256([]byte(key)))]
		if !known && s.err == nil {
			s.err = fmt.Errorf("account of %s: no such API key", key)
		}
		names[account] = key
	}
	b.Keys = rows[KeyRow](ctx, s, keysSQL)
	for i := range b.Keys {
		b.Keys[i].Account = names[b.Keys[i].Account]
	}
	b.Orders = rows[Order](ctx, s, `SELECT id::text, account_id::text, customer_id::text, status, total_amount,
		(SELECT jsonb_object_agg(sku, quantity) FROM order_items WHERE order_id = orders.id), created_at FROM orders`)
	b.Payments = rows[Payment](ctx, s, `SELECT id::text, order_id::text, customer_id::text, method, status, amount, refunded FROM payments`)
	b.Refunds = rows[Refund](ctx, s, `SELECT id::text, payment_id::text, order_id::text, status, amount FROM refunds`)
	b.TopUps = rows[TopUp](ctx, s, `SELECT id::text, customer_id::text, amount FROM top_ups`)
	b.Wallets = byID[int64](ctx, s, `SELECT customers.id::text, coalesce(balance, 0) FROM customers LEFT JOIN wallets ON customer_id = customers.id`)
	b.Customers = byID[string](ctx, s, `SELECT id::text, name FROM customers`)
	b.Transactions = rows[Transaction](ctx, s, `SELECT t.id::text, t.subject::text, coalesce(sum(e.amount), 0)::bigint,
		coalesce(sum(e.amount) FILTER (WHERE e.amount > 0), 0)::bigint
		FROM ledger_transactions t LEFT JOIN ledger_entries e ON e.transaction_id = t.id GROUP BY t.id`)
	// A transaction is recognized by its time, which all of its rows have. Another one may have the
	// same microsecond: see [ProviderEvent.ActedAgain].
	b.ProviderEvents = rows[ProviderEvent](ctx, s, `SELECT event_id, verdict, coalesce(p.order_id::text, r.order_id::text, ''), e.xmin::text,
		coalesce(p.updated_at = received_at OR f.updated_at = received_at, false) FROM provider_events e
		LEFT JOIN payments p ON 'payment-' || p.id = subject
		LEFT JOIN refunds f ON 'refund-' || f.id = subject
		LEFT JOIN payments r ON r.id = f.payment_id`)
	for _, p := range rows[Product](ctx, s, `SELECT account_id::text, sku, 0::bigint, stock, version, false FROM products`) {
		if opening, ours := r.Opening[names[p.Account]]; ours {
			stock, known := opening[p.SKU]
			p.Opening, p.Restocked = stock, !known
			b.Products = append(b.Products, p)
		}
	}
	b.Events = rows[Event](ctx, s, `SELECT event_id::text, subject::text, type, created_at, id <= (SELECT position FROM outbox_cursor),
		coalesce(data->>'refund_id', data->>'payment_id', data->>'top_up_id', data->>'order_id', data->>'customer_id', '') FROM outbox ORDER BY id`)
	b.Confirmations = byID[int](ctx, s, `SELECT order_id::text, count(*) FROM order_confirmations WHERE type = 'order.placed' GROUP BY order_id`)
	b.WarehouseNotices = byID[int](ctx, s, `SELECT order_id::text, count(*) FROM warehouse_notices GROUP BY order_id`)
	if r.MailsURL != "" {
		b.Mailable = rows[Confirmation](ctx, s, `SELECT event_id::text, due_at IS NOT NULL,
			due_at IS NULL AND sent_at IS NULL AND email !~ '^[A-Za-z0-9_-]+@example\.com$'
			FROM order_confirmations JOIN orders o ON o.id = order_id JOIN customers c ON c.id = o.customer_id`)
	}
}

// keysSQL reads the authority's rows. A refused key is free: it has no answer. What a key led to is
// in its answer. An expired one has the path instead; a refund and a top-up have no path of their
// own, but that of what they are a part of.
const keysSQL = `SELECT account_id::text, key, operation, status, coalesce(response_status, 0), encode(sha256(coalesce(response_body, '')), 'hex'),
	CASE WHEN status <> 'expired' THEN coalesce(convert_from(nullif(response_body, ''), 'UTF8')::jsonb->>'id', '')
		ELSE coalesce(resource_id::text, CASE operation WHEN 'pay_order' THEN path END, '') END,
	CASE WHEN status = 'expired' AND resource_id IS NULL AND operation <> 'pay_order' THEN coalesce(path, '') ELSE '' END, attempted_at
	FROM (SELECT *, substring(resource from '[0-9a-f-]{36}') AS path FROM idempotency_keys) k WHERE status <> 'refused'`

// snapshot is a transaction that is read until the first error.
type snapshot struct {
	tx  pgx.Tx
	err error
}

// rows reads a row into each struct, its columns in the order of the fields.
func rows[T any](ctx context.Context, s *snapshot, sql string) (all []T) {
	if s.err == nil {
		found, _ := s.tx.Query(ctx, sql) // CollectRows returns its error
		all, s.err = pgx.CollectRows(found, pgx.RowToStructByPos[T])
	}
	return all
}

// byID reads two columns: an ID and something about it.
func byID[V any](ctx context.Context, s *snapshot, sql string) map[string]V {
	all := map[string]V{}
	for _, row := range rows[struct {
		ID    string
		Value V
	}](ctx, s, sql) {
		all[row.ID] = row.Value
	}
	return all
}
