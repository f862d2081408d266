-- name: LockRefund :batchone
SELECT * FROM refunds WHERE account_id = @account_id AND id = @id FOR NO KEY UPDATE;

-- name: SettledRefunds :batchone
-- What has been refunded of a payment, without what is still processing.
SELECT coalesce(sum(amount), 0)::bigint FROM refunds
WHERE account_id = @account_id AND payment_id = @payment_id AND status = 'succeeded';

-- name: InsertRefund :batchexec
INSERT INTO refunds (id, account_id, payment_id, order_id, amount, currency, status, decline_code, provider_id,
    charge_id, attempt, created_at, updated_at)
VALUES (@id, @account_id, @payment_id, @order_id, @amount, @currency, @status, @decline_code, @provider_id,
    @charge_id, @attempt, @created_at, @updated_at);

-- name: ResumeRefund :batchone
-- The next attempt of the refund that a key in progress began, and with it the fence for all earlier ones.
UPDATE refunds SET attempt = attempt + 1, updated_at = now()
WHERE refunds.status = 'processing' AND id = (SELECT k.resource_id FROM idempotency_keys k
    WHERE k.account_id = @account_id AND k.key = @key AND k.fingerprint = @fingerprint AND k.status = 'in_progress')
RETURNING *;

-- name: SettleRefund :batchexec
UPDATE refunds SET status = @status, decline_code = @decline_code, provider_id = @provider_id, updated_at = @updated_at
WHERE account_id = @account_id AND id = @id AND status = 'processing' AND attempt = @attempt;
