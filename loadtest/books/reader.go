package books

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
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
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return b, fmt.Errorf("open the books: %w", err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	for _, read := range []func(context.Context, pgx.Tx, *Books) error{r.keys, r.orders, r.money, r.providerEvents, r.products, r.events, r.confirmations} {
		if err := read(ctx, tx, &b); err != nil {
			return b, fmt.Errorf("read the books: %w", err)
		}
	}
	if b.Charges, err = ProviderList(ctx, http.DefaultClient, r.ProviderURL, "charges"); err != nil {
		return b, err
	}
	if b.ProviderRefunds, err = ProviderList(ctx, http.DefaultClient, r.ProviderURL, "refunds"); err != nil {
		return b, err
	}
	if err := r.mails(ctx, &b); err != nil {
		return b, err
	}
	return b, r.redis(ctx, &b)
}

// accounts maps an account's ID to its API key.
func (r Reader) accounts(ctx context.Context, tx pgx.Tx) (map[string]string, error) {
	names := map[string]string{}
	for _, key := range r.APIKeys {
		hash := sha256.Sum256([]byte(key))
		var id string
		if err := tx.QueryRow(ctx, "SELECT account_id::text FROM api_keys WHERE hash = $1", hash[:]).Scan(&id); err != nil {
			return nil, fmt.Errorf("account of %s: %w", key, err)
		}
		names[id] = key
	}
	return names, nil
}

func (r Reader) keys(ctx context.Context, tx pgx.Tx, b *Books) error {
	names, err := r.accounts(ctx, tx)
	if err != nil {
		return err
	}
	// A refused key is free: it has no answer. An expired one has the path of what it led to; a
	// refund and a top-up have no path of their own.
	return each(ctx, tx, `SELECT account_id::text, key, operation, status, coalesce(response_status, 0), response_body,
		coalesce(resource_id::text, ''), coalesce(substring(resource from '[0-9a-f-]{36}'), ''), attempted_at
		FROM idempotency_keys WHERE status <> 'refused'`, func(rows pgx.Rows) error {
		var row KeyRow
		var body []byte
		var own, path string
		if err := rows.Scan(&row.Account, &row.Key, &row.Operation, &row.Status, &row.ResponseStatus, &body, &own, &path, &row.AttemptedAt); err != nil {
			return err
		}
		row.Account, row.Body, row.Resource = names[row.Account], digest(body), idOf(body)
		switch {
		case row.Status != Expired:
		case own != "":
			row.Resource = own
		case row.Operation == payOrder:
			row.Resource = path
		default:
			row.Parent = path
		}
		b.Keys = append(b.Keys, row)
		return nil
	})
}

// idOf is the ID in a kept body; a problem has none.
func idOf(body []byte) string {
	var resource struct{ ID string }
	_ = json.Unmarshal(body, &resource)
	return resource.ID
}

func digest(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

func (r Reader) orders(ctx context.Context, tx pgx.Tx, b *Books) error {
	return each(ctx, tx, `SELECT id::text, account_id::text, customer_id::text, status, total_amount, created_at,
		(SELECT jsonb_object_agg(sku, quantity) FROM order_items WHERE order_id = orders.id) FROM orders`, func(rows pgx.Rows) error {
		var o Order
		if err := rows.Scan(&o.ID, &o.Account, &o.Customer, &o.Status, &o.Total, &o.Created, &o.Items); err != nil {
			return err
		}
		b.Orders = append(b.Orders, o)
		return nil
	})
}

func (r Reader) money(ctx context.Context, tx pgx.Tx, b *Books) error {
	err := each(ctx, tx, `SELECT id::text, order_id::text, customer_id::text, method, status, amount, refunded FROM payments`, func(rows pgx.Rows) error {
		var p Payment
		err := rows.Scan(&p.ID, &p.Order, &p.Customer, &p.Method, &p.Status, &p.Amount, &p.Refunded)
		b.Payments = append(b.Payments, p)
		return err
	})
	if err != nil {
		return err
	}
	err = each(ctx, tx, `SELECT id::text, payment_id::text, order_id::text, status, amount FROM refunds`, func(rows pgx.Rows) error {
		var f Refund
		err := rows.Scan(&f.ID, &f.Payment, &f.Order, &f.Status, &f.Amount)
		b.Refunds = append(b.Refunds, f)
		return err
	})
	if err != nil {
		return err
	}
	err = each(ctx, tx, `SELECT id::text, customer_id::text, amount FROM top_ups`, func(rows pgx.Rows) error {
		var t TopUp
		err := rows.Scan(&t.ID, &t.Customer, &t.Amount)
		b.TopUps = append(b.TopUps, t)
		return err
	})
	if err != nil {
		return err
	}
	b.Wallets, b.Customers = map[string]int64{}, map[string]string{}
	err = each(ctx, tx, `SELECT customers.id::text, name, coalesce(balance, 0) FROM customers LEFT JOIN wallets ON customer_id = customers.id`, func(rows pgx.Rows) error {
		var customer, name string
		var balance int64
		err := rows.Scan(&customer, &name, &balance)
		b.Wallets[customer], b.Customers[customer] = balance, name
		return err
	})
	if err != nil {
		return err
	}
	return each(ctx, tx, `SELECT t.id::text, t.subject::text, coalesce(sum(e.amount), 0)::bigint, coalesce(sum(e.amount) FILTER (WHERE e.amount > 0), 0)::bigint
		FROM ledger_transactions t LEFT JOIN ledger_entries e ON e.transaction_id = t.id GROUP BY t.id`, func(rows pgx.Rows) error {
		var t Transaction
		err := rows.Scan(&t.ID, &t.Subject, &t.Sum, &t.Volume)
		b.Transactions = append(b.Transactions, t)
		return err
	})
}

// providerEvents recognizes a transaction by its time, which all of its rows have. Another one may
// have the same microsecond: see [ProviderEvent.ActedAgain].
func (r Reader) providerEvents(ctx context.Context, tx pgx.Tx, b *Books) error {
	return each(ctx, tx, `SELECT event_id, verdict, e.xmin::text, coalesce(p.order_id, r.order_id)::text,
		coalesce(p.updated_at = received_at OR f.updated_at = received_at, false) FROM provider_events e
		LEFT JOIN payments p ON 'payment-' || p.id = subject
		LEFT JOIN refunds f ON 'refund-' || f.id = subject
		LEFT JOIN payments r ON r.id = f.payment_id`, func(rows pgx.Rows) error {
		var e ProviderEvent
		var order *string
		err := rows.Scan(&e.ID, &e.Verdict, &e.Row, &order, &e.Settled)
		if order != nil {
			e.Order = *order
		}
		b.ProviderEvents = append(b.ProviderEvents, e)
		return err
	})
}

func (r Reader) products(ctx context.Context, tx pgx.Tx, b *Books) error {
	names, err := r.accounts(ctx, tx)
	if err != nil {
		return err
	}
	return each(ctx, tx, `SELECT account_id::text, sku, stock, version FROM products`, func(rows pgx.Rows) error {
		var p Product
		if err := rows.Scan(&p.Account, &p.SKU, &p.Stock, &p.Version); err != nil {
			return err
		}
		if opening, ours := r.Opening[names[p.Account]]; ours {
			stock, known := opening[p.SKU]
			p.Opening, p.Restocked = stock, !known
			b.Products = append(b.Products, p)
		}
		return nil
	})
}

func (r Reader) events(ctx context.Context, tx pgx.Tx, b *Books) error {
	err := each(ctx, tx, `SELECT event_id::text, subject::text, type, created_at, id <= (SELECT position FROM outbox_cursor),
		coalesce(data->>'refund_id', data->>'payment_id', data->>'top_up_id', data->>'order_id', data->>'customer_id', '') FROM outbox ORDER BY id`, func(rows pgx.Rows) error {
		var e Event
		err := rows.Scan(&e.ID, &e.Subject, &e.Type, &e.Created, &e.Published, &e.About)
		b.Events = append(b.Events, e)
		return err
	})
	if err == nil {
		b.Confirmations, err = countByOrder(ctx, tx, "order_confirmations WHERE type = 'order.placed'")
	}
	if err == nil {
		b.WarehouseNotices, err = countByOrder(ctx, tx, "warehouse_notices")
	}
	return err
}

func countByOrder(ctx context.Context, tx pgx.Tx, table string) (map[string]int, error) {
	count := map[string]int{}
	return count, each(ctx, tx, "SELECT order_id::text, count(*) FROM "+table+" GROUP BY order_id", func(rows pgx.Rows) error {
		var order string
		var n int
		err := rows.Scan(&order, &n)
		count[order] = n
		return err
	})
}

func each(ctx context.Context, tx pgx.Tx, query string, row func(pgx.Rows) error) error {
	rows, err := tx.Query(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
