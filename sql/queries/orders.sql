-- name: GetOrder :one
SELECT sqlc.embed(orders), (SELECT jsonb_agg(order_items.* ORDER BY position) FROM order_items WHERE order_id = orders.id) AS items
FROM orders WHERE orders.account_id = @account_id AND orders.id = @id;

-- name: ListOrders :many
SELECT sqlc.embed(orders), (SELECT jsonb_agg(order_items.* ORDER BY position) FROM order_items WHERE order_id = orders.id) AS items
FROM orders
WHERE orders.account_id = @account_id
  AND orders.id < coalesce(sqlc.narg('before')::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  AND (sqlc.narg('customer')::uuid IS NULL OR orders.customer_id = sqlc.narg('customer'))
ORDER BY orders.id DESC LIMIT @page_size;

-- name: LockOrder :batchone
SELECT sqlc.embed(orders), (SELECT jsonb_agg(order_items.* ORDER BY position) FROM order_items WHERE order_id = orders.id) AS items
FROM orders WHERE orders.account_id = @account_id AND orders.id = @id FOR NO KEY UPDATE;

-- name: LockOrderOfPayment :batchone
SELECT sqlc.embed(orders), (SELECT jsonb_agg(order_items.* ORDER BY position) FROM order_items WHERE order_id = orders.id) AS items
FROM orders
WHERE orders.account_id = @account_id
  AND orders.id = (SELECT p.order_id FROM payments p WHERE p.account_id = @account_id AND p.id = @payment_id)
FOR NO KEY UPDATE;

-- name: InsertOrder :batchexec
INSERT INTO orders (id, account_id, customer_id, status, total_amount, total_currency, created_at, updated_at, expires_at)
VALUES (@id, @account_id, @customer_id, @status, @total_amount, @total_currency, @created_at, @updated_at, @expires_at);

-- name: InsertOrderItem :batchexec
INSERT INTO order_items (order_id, position, account_id, sku, name, quantity, unit_price)
VALUES (@order_id, @position, @account_id, @sku, @name, @quantity, @unit_price);

-- name: UpdateOrder :batchexec
UPDATE orders SET status = @status, shipping_address = @shipping_address, updated_at = @updated_at
WHERE account_id = @account_id AND id = @id;

-- name: LockDueOrders :batchmany
-- Unpaid orders of any account whose time is up. Skips orders that another transaction is paying or cancelling.
SELECT sqlc.embed(orders), (SELECT jsonb_agg(order_items.* ORDER BY position) FROM order_items WHERE order_id = orders.id) AS items,
    now()::timestamptz AS now
FROM orders
WHERE orders.status = 'pending' AND orders.expires_at <= now()
ORDER BY orders.expires_at LIMIT @batch_size FOR NO KEY UPDATE SKIP LOCKED;
