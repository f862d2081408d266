-- name: GetWallet :one
SELECT * FROM wallets WHERE account_id = @account_id AND customer_id = @customer_id;

-- name: LockWallet :batchone
SELECT * FROM wallets WHERE account_id = @account_id AND customer_id = @customer_id FOR NO KEY UPDATE;

-- name: LockWalletOfOrder :batchone
SELECT * FROM wallets
WHERE wallets.account_id = @account_id
  AND wallets.customer_id = (SELECT o.customer_id FROM orders o WHERE o.account_id = @account_id AND o.id = @order_id)
FOR NO KEY UPDATE;

-- name: LockWalletOfPayment :batchone
SELECT * FROM wallets
WHERE wallets.account_id = @account_id
  AND wallets.customer_id = (SELECT p.customer_id FROM payments p WHERE p.account_id = @account_id AND p.id = @payment_id)
FOR NO KEY UPDATE;

-- name: InsertWallet :batchexec
INSERT INTO wallets (customer_id, account_id, balance, currency, updated_at)
VALUES (@customer_id, @account_id, 0, @currency, @updated_at);

-- name: SetBalance :batchexec
UPDATE wallets SET balance = @balance, updated_at = @updated_at
WHERE account_id = @account_id AND customer_id = @customer_id;

-- name: InsertTopUp :batchexec
INSERT INTO top_ups (id, account_id, customer_id, amount, currency, balance, created_at)
VALUES (@id, @account_id, @customer_id, @amount, @currency, @balance, @created_at);
