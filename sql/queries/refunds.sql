-- name: ListRefunds :many
SELECT * FROM refunds WHERE account_id = @account_id AND payment_id = @payment_id
  AND id < coalesce(sqlc.narg('before')::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
ORDER BY id DESC LIMIT @page_size;

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
UPDATE refunds SET attempt = attempt + 1, updated_at = now(), reconcile_at = NULL
WHERE refunds.status = 'processing' AND id = (SELECT k.resource_id FROM idempotency_keys k
    WHERE k.account_id = @account_id AND k.key = @key AND k.fingerprint = @fingerprint AND k.status = 'in_progress')
RETURNING *;

-- name: SettleRefund :batchexec
-- The fence is the same as that of SettlePayment.
UPDATE refunds SET status = @status, decline_code = @decline_code, provider_id = @provider_id, updated_at = @updated_at
WHERE account_id = @account_id AND id = @id AND status = 'processing' AND attempt = @attempt;

-- name: TakeRefunds :many
-- See TakePayments.
WITH due AS (
    SELECT r.id, k.key, k.fingerprint, k.operation
    FROM refunds r JOIN idempotency_keys k ON k.resource_id = r.id AND k.status = 'in_progress'
    WHERE r.status = 'processing' AND coalesce(r.reconcile_at, r.updated_at + make_interval(secs => @grace_seconds)) <= now()
    ORDER BY r.updated_at LIMIT @batch_size FOR NO KEY UPDATE OF r SKIP LOCKED
), fenced AS (
    UPDATE idempotency_keys k SET attempt = k.attempt + 1, taken_at = now(), due_at = NULL
    FROM due WHERE k.resource_id = due.id AND k.status = 'in_progress'
    RETURNING k.resource_id, k.attempt
)
UPDATE refunds SET attempt = refunds.attempt + 1, updated_at = now(), reconcile_at = NULL
FROM due JOIN fenced ON fenced.resource_id = due.id WHERE refunds.id = due.id
RETURNING sqlc.embed(refunds), due.key, due.fingerprint, due.operation, fenced.attempt AS key_attempt;

-- name: PutOffRefund :execrows
-- See PutOffPayment.
WITH put_off AS (
    UPDATE refunds SET reconcile_at = now() + make_interval(secs => @wait_seconds), provider_id = coalesce(nullif(@provider_id::text, ''), provider_id)
    WHERE refunds.account_id = @account_id AND refunds.id = @id AND refunds.status = 'processing' AND refunds.attempt = @attempt RETURNING refunds.id
)
UPDATE idempotency_keys k SET due_at = now() + make_interval(secs => @wait_seconds)
FROM put_off WHERE k.resource_id = put_off.id AND k.status = 'in_progress';
