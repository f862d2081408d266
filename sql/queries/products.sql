-- name: PutProduct :one
-- xmax is zero in a row that no transaction has replaced yet: it was inserted.
INSERT INTO products (account_id, sku, name, price_amount, price_currency, stock)
VALUES (@account_id, @sku, @name, @price_amount, @price_currency, @stock)
ON CONFLICT (account_id, sku) DO UPDATE SET name = excluded.name, price_amount = excluded.price_amount,
    price_currency = excluded.price_currency, stock = excluded.stock, updated_at = now()
RETURNING sqlc.embed(products), (xmax = 0)::boolean AS created;

-- name: GetProduct :one
SELECT * FROM products WHERE account_id = @account_id AND sku = @sku;

-- name: ListProducts :many
SELECT * FROM products WHERE account_id = @account_id AND sku > @after ORDER BY sku LIMIT @page_size;

-- name: LockProducts :batchmany
-- In the order of the SKU, like everyone who locks several products.
SELECT * FROM products WHERE account_id = @account_id AND sku = ANY (@skus::text[])
ORDER BY sku FOR NO KEY UPDATE;

-- name: LockProductsOfOrder :batchexec
SELECT FROM products
WHERE products.account_id = @account_id
  AND products.sku IN (SELECT i.sku FROM order_items i WHERE i.order_id = @order_id)
ORDER BY products.sku FOR NO KEY UPDATE;

-- name: LockProductsOfOrders :batchexec
-- Of any account. Within each, the order is that of LockProducts.
SELECT FROM products
WHERE (products.account_id, products.sku) IN (SELECT i.account_id, i.sku FROM order_items i WHERE i.order_id = ANY (@orders::uuid[]))
ORDER BY products.account_id, products.sku FOR NO KEY UPDATE;

-- name: AddStock :batchexec
UPDATE products SET stock = stock + @quantity, updated_at = now() WHERE account_id = @account_id AND sku = @sku;
