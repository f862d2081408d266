-- The books as one JSON object, whose parts and columns have the names of the fields of Books.
-- $1: the API keys of the accounts; $2: the stock at the beginning, as JSON by API key and SKU.
WITH ours AS (
	SELECT account_id, name FROM unnest($1::text[]) name JOIN api_keys ON hash = sha256(convert_to(name, 'UTF8'))
)
SELECT json_build_object(
'Accounts', (SELECT json_agg(name) FROM ours),

-- A refused key is free: it has no answer. What a key led to is in its answer. An expired one has the path instead; a
-- refund and a top-up have no path of their own, but that of what they are a part of.
'Keys', (SELECT json_agg(r) FROM (
	SELECT coalesce(name, '') AS "Account", key AS "Key", operation AS "Operation", status AS "Status",
		coalesce(response_status, 0) AS "ResponseStatus", encode(sha256(coalesce(response_body, '')), 'hex') AS "Body",
		CASE WHEN status <> 'expired' THEN coalesce(convert_from(nullif(response_body, ''), 'UTF8')::jsonb->>'id', '')
			ELSE coalesce(resource_id::text, CASE operation WHEN 'pay_order' THEN path END, '') END AS "Resource",
		CASE WHEN status = 'expired' AND resource_id IS NULL AND operation <> 'pay_order' THEN coalesce(path, '')
			ELSE '' END AS "Parent"
	FROM (SELECT *, substring(resource from '[0-9a-f-]{36}') AS path FROM idempotency_keys) k LEFT JOIN ours USING (account_id)
	WHERE status <> 'refused') r),

'Orders', (SELECT json_agg(r) FROM (
	SELECT id AS "ID", account_id AS "Account", customer_id AS "Customer", status AS "Status", total_amount AS "Total",
		(SELECT json_object_agg(sku, quantity) FROM order_items WHERE order_id = orders.id) AS "Items"
	FROM orders) r),

'Payments', (SELECT json_agg(r) FROM (
	SELECT id AS "ID", order_id AS "Order", customer_id AS "Customer", method AS "Method", status AS "Status",
		amount AS "Amount", refunded AS "Refunded"
	FROM payments) r),

'Refunds', (SELECT json_agg(r) FROM (
	SELECT id AS "ID", payment_id AS "Payment", order_id AS "Order", status AS "Status", amount AS "Amount" FROM refunds) r),

'TopUps', (SELECT json_agg(r) FROM (SELECT id AS "ID", customer_id AS "Customer", amount AS "Amount" FROM top_ups) r),

'Transactions', (SELECT json_agg(r) FROM (
	SELECT t.id AS "ID", t.subject AS "Subject", coalesce(sum(e.amount), 0) AS "Sum",
		coalesce(sum(e.amount) FILTER (WHERE e.amount > 0), 0) AS "Volume"
	FROM ledger_transactions t LEFT JOIN ledger_entries e ON e.transaction_id = t.id GROUP BY t.id) r),

'Wallets', (SELECT json_object_agg(id, coalesce(balance, 0)) FROM customers LEFT JOIN wallets ON customer_id = id),
'Customers', (SELECT json_object_agg(id, name) FROM customers),

-- The products of accounts that have an opening stock.
'Products', (SELECT json_agg(r) FROM (
	SELECT account_id AS "Account", sku AS "SKU", coalesce(($2::jsonb->ours.name->>sku)::bigint, 0) AS "Opening",
		stock AS "Stock", version AS "Version", NOT $2::jsonb->ours.name ? sku AS "Restocked"
	FROM products JOIN ours USING (account_id) WHERE $2::jsonb ? ours.name) r),

'Events', (SELECT json_agg(r) FROM (
	SELECT event_id AS "ID", subject AS "Subject", type AS "Type", created_at AS "Created",
		id <= (SELECT position FROM outbox_cursor) AS "Published",
		coalesce(data->>'refund_id', data->>'payment_id', data->>'top_up_id', data->>'order_id', data->>'customer_id', '') AS "About"
	FROM outbox ORDER BY id) r),

-- A transaction is recognized by its time, which all of its rows have. Another one may have the same microsecond: see
-- ProviderEvent.ActedAgain.
'ProviderEvents', (SELECT json_agg(r) FROM (
	SELECT event_id AS "ID", verdict AS "Verdict", coalesce(p.order_id, of.order_id) AS "Order", e.xmin::text AS "Row",
		coalesce(p.updated_at = received_at OR f.updated_at = received_at, false) AS "Settled"
	FROM provider_events e
	LEFT JOIN payments p ON 'payment-' || p.id = subject
	LEFT JOIN refunds f ON 'refund-' || f.id = subject
	LEFT JOIN payments of ON of.id = f.payment_id) r),

'Confirmations', (SELECT json_object_agg(order_id, n) FROM (
	SELECT order_id, count(*) AS n FROM order_confirmations WHERE type = 'order.placed' GROUP BY order_id) r),
'WarehouseNotices', (SELECT json_object_agg(order_id, n) FROM (
	SELECT order_id, count(*) AS n FROM warehouse_notices GROUP BY order_id) r),

'Mailable', (SELECT json_agg(r) FROM (
	SELECT event_id AS "Event",
		due_at IS NULL AND sent_at IS NULL AND email !~ '^[A-Za-z0-9_-]+@example\.com$' AS "Refused"
	FROM order_confirmations JOIN orders o ON o.id = order_id JOIN customers c ON c.id = o.customer_id) r))
