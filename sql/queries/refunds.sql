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
    charge_id, created_at, updated_at)
VALUES (@id, @account_id, @payment_id, @order_id, @amount, @currency, @status, @decline_code, @provider_id,
    @charge_id, @created_at, @updated_at);

-- name: ResumeRefund :batchone
-- See ResumePayment.
UPDATE refunds SET updated_at = now()
WHERE refunds.account_id = @account_id AND refunds.status = 'processing' AND id = (SELECT k.resource_id FROM idempotency_keys k
    WHERE k.account_id = @account_id AND k.key = @key AND k.fingerprint = @fingerprint AND k.status = 'in_progress')
RETURNING *;

-- name: SettleRefund :batchexec
-- See SettlePayment.
UPDATE refunds SET status = @status, decline_code = @decline_code, provider_id = @provider_id, updated_at = @updated_at
WHERE account_id = @account_id AND id = @id AND status = 'processing';

-- name: StampRefunds :many
-- See StampPayments.
UPDATE refunds SET updated_at = now() WHERE id IN (
    SELECT due.id FROM refunds due WHERE due.id = ANY(@ids::uuid[]) AND due.status = 'processing' FOR NO KEY UPDATE SKIP LOCKED)
RETURNING *;

-- name: KeepRefundID :exec
-- See KeepChargeID.
UPDATE refunds SET provider_id = @provider_id
WHERE refunds.account_id = @account_id AND refunds.id = @id AND refunds.status = 'processing' AND EXISTS (SELECT FROM idempotency_keys k
    WHERE k.account_id = @account_id AND k.key = @key AND k.resource_id = refunds.id AND k.status = 'in_progress' AND k.attempt = @attempt);
