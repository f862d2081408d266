-- name: GetCustomer :one
SELECT * FROM customers WHERE account_id = @account_id AND id = @id AND erased_at IS NULL;

-- name: LockCustomer :batchone
SELECT * FROM customers WHERE account_id = @account_id AND id = @id AND erased_at IS NULL FOR NO KEY UPDATE;

-- name: CustomerExists :batchone
SELECT EXISTS (SELECT FROM customers WHERE account_id = @account_id AND id = @id AND erased_at IS NULL);

-- name: CustomerOfOrderExists :batchone
-- Sent behind LockOrder, as a statement of its own: it sees what was committed while the lock was waited for.
SELECT EXISTS (SELECT FROM orders o JOIN customers c ON c.account_id = o.account_id AND c.id = o.customer_id
    WHERE o.account_id = @account_id AND o.id = @order_id AND c.erased_at IS NULL);

-- name: EmailTaken :batchone
SELECT EXISTS (SELECT FROM customers WHERE account_id = @account_id AND lower(email) = lower(@email) AND id <> @not_id);

-- name: InsertCustomer :batchexec
INSERT INTO customers (id, account_id, name, email, created_at, updated_at)
VALUES (@id, @account_id, @name, @email, @created_at, @updated_at);

-- name: UpdateCustomer :batchexec
UPDATE customers SET name = @name, email = @email, updated_at = @updated_at
WHERE account_id = @account_id AND id = @id;
