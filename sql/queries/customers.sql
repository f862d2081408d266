-- name: GetCustomer :one
SELECT * FROM customers WHERE account_id = @account_id AND id = @id;

-- name: LockCustomer :batchone
SELECT * FROM customers WHERE account_id = @account_id AND id = @id FOR NO KEY UPDATE;

-- name: CustomerExists :batchone
SELECT EXISTS (SELECT FROM customers WHERE account_id = @account_id AND id = @id);

-- name: EmailTaken :batchone
SELECT EXISTS (SELECT FROM customers WHERE account_id = @account_id AND lower(email) = lower(@email) AND id <> @not_id);

-- name: InsertCustomer :batchexec
INSERT INTO customers (id, account_id, name, email, created_at, updated_at)
VALUES (@id, @account_id, @name, @email, @created_at, @updated_at);

-- name: UpdateCustomer :batchexec
UPDATE customers SET name = @name, email = @email, updated_at = @updated_at
WHERE account_id = @account_id AND id = @id;
