-- name: InsertProduct :batchexec
INSERT INTO products (name, price_amount, price_currency, stock, updated_at, account_id, sku)
VALUES (@name, @price_amount, @price_currency, @stock, @updated_at, @account_id, @sku);

-- name: UpdateProduct :batchexec
UPDATE products SET name = @name, price_amount = @price_amount, price_currency = @price_currency, stock = @stock,
    updated_at = @updated_at, version = version + 1
WHERE account_id = @account_id AND sku = @sku;

-- name: GetProduct :one
SELECT * FROM products WHERE account_id = @account_id AND sku = @sku;

-- name: ListProducts :many
SELECT * FROM products WHERE account_id = @account_id AND sku > @after ORDER BY sku LIMIT @page_size;

-- name: ReadProducts :batchmany
SELECT * FROM products WHERE account_id = @account_id AND sku = ANY (@skus::text[]);

-- name: LockProducts :batchmany
-- In the order of the SKU's bytes, like everyone who changes several products.
SELECT * FROM products WHERE account_id = @account_id AND sku = ANY (@skus::text[]) ORDER BY sku COLLATE "C" FOR NO KEY UPDATE;

-- name: TakeStock :batchexec
-- If the price has changed or the stock no longer suffices, the stock becomes negative, which
-- products_stock_not_negative refuses, and nothing of the transaction is committed.
UPDATE products SET updated_at = now(), version = version + 1,
    stock = CASE WHEN price_amount = @price_amount AND price_currency = @price_currency THEN stock - @quantity ELSE -1 END
WHERE account_id = @account_id AND sku = @sku;

-- name: LockProductsOfOrders :batchexec
-- Of any account. Within each, in the order of the SKU's bytes, like everyone who changes several products.
SELECT FROM products
WHERE (products.account_id, products.sku) IN (SELECT i.account_id, i.sku FROM order_items i WHERE i.order_id = ANY (@orders::uuid[]))
ORDER BY products.account_id, products.sku COLLATE "C" FOR NO KEY UPDATE;

-- name: AddStock :batchexec
UPDATE products SET stock = stock + @quantity, updated_at = now(), version = version + 1
WHERE account_id = @account_id AND sku = @sku;
