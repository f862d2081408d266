-- name: GetPayment :one
SELECT * FROM payments WHERE account_id = @account_id AND id = @id;

-- name: LockPayment :batchone
SELECT * FROM payments WHERE account_id = @account_id AND id = @id FOR NO KEY UPDATE;

-- name: InsertPayment :batchexec
INSERT INTO payments (id, account_id, order_id, customer_id, method, token, amount, currency, refunded, status,
    decline_code, provider_id, attempt, created_at, updated_at)
VALUES (@id, @account_id, @order_id, @customer_id, @method, @token, @amount, @currency, @refunded, @status,
    @decline_code, @provider_id, @attempt, @created_at, @updated_at);

-- name: ResumePayment :batchone
-- The next attempt of the payment that a key in progress began, and with it the fence for all earlier ones.
UPDATE payments SET attempt = attempt + 1, updated_at = now()
WHERE payments.status = 'processing' AND id = (SELECT k.resource_id FROM idempotency_keys k
    WHERE k.account_id = @account_id AND k.key = @key AND k.fingerprint = @fingerprint AND k.status = 'in_progress')
RETURNING *;

-- name: SettlePayment :batchexec
UPDATE payments SET status = @status, decline_code = @decline_code, provider_id = @provider_id, updated_at = @updated_at
WHERE account_id = @account_id AND id = @id AND status = 'processing' AND attempt = @attempt;

-- name: SetRefunded :batchexec
UPDATE payments SET refunded = @refunded, updated_at = @updated_at WHERE account_id = @account_id AND id = @id;
