-- name: GetPayment :one
SELECT * FROM payments WHERE account_id = @account_id AND id = @id;

-- name: ListPayments :many
SELECT * FROM payments WHERE account_id = @account_id AND order_id = @order_id
  AND id < coalesce(sqlc.narg('before')::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
ORDER BY id DESC LIMIT @page_size;

-- name: LockPayment :batchone
SELECT * FROM payments WHERE account_id = @account_id AND id = @id FOR NO KEY UPDATE;

-- name: CountDeclines :batchone
-- Sent behind LockOrder, as a statement of its own: it sees what the transactions committed that the lock waited for.
SELECT count(*) FROM payments WHERE account_id = @account_id AND order_id = @order_id AND status = 'declined';

-- name: InsertPayment :batchexec
INSERT INTO payments (id, account_id, order_id, customer_id, method, token, amount, currency, refunded, status,
    decline_code, provider_id, created_at, updated_at)
VALUES (@id, @account_id, @order_id, @customer_id, @method, @token, @amount, @currency, @refunded, @status,
    @decline_code, @provider_id, @created_at, @updated_at);

-- name: ResumePayment :batchone
-- The payment that a key in progress began. The authority then takes the next attempt, in the same transaction.
UPDATE payments SET updated_at = now()
WHERE payments.account_id = @account_id AND payments.status = 'processing' AND id = (SELECT k.resource_id FROM idempotency_keys k
    WHERE k.account_id = @account_id AND k.key = @key AND k.fingerprint = @fingerprint AND k.status = 'in_progress')
RETURNING *;

-- name: SettlePayment :batchexec
-- The caller has compared the status under the row's lock. The row count of a batch is not read, so the condition here
-- only repeats that. The fence is in the key's row.
UPDATE payments SET status = @status, decline_code = @decline_code, provider_id = @provider_id, updated_at = @updated_at
WHERE account_id = @account_id AND id = @id AND status = 'processing';

-- name: SetRefunded :batchexec
UPDATE payments SET refunded = @refunded, updated_at = @updated_at WHERE account_id = @account_id AND id = @id;

-- name: StampPayments :many
-- Of any account: payments whose next attempts were taken, and that nobody is changing now. The time of the newest attempt is
-- in updated_at.
UPDATE payments SET updated_at = now() WHERE id IN (
    SELECT due.id FROM payments due WHERE due.id = ANY(@ids::uuid[]) AND due.status = 'processing' FOR NO KEY UPDATE SKIP LOCKED)
RETURNING *;

-- name: KeepChargeID :exec
-- Only the newest attempt may say which of the provider's charges is the payment's.
UPDATE payments SET provider_id = @provider_id
WHERE payments.account_id = @account_id AND payments.id = @id AND payments.status = 'processing' AND EXISTS (SELECT FROM idempotency_keys k
    WHERE k.account_id = @account_id AND k.key = @key AND k.resource_id = payments.id AND k.status = 'in_progress' AND k.attempt = @attempt);

-- name: CountPayments :many
-- What is settled only as far back as the figure says; what is processing may be older, and is never much.
SELECT status, count(*) AS payments FROM payments
WHERE status <> 'processing' AND created_at > now() - make_interval(secs => @since_seconds) GROUP BY status
UNION ALL
SELECT 'processing', count(*) FROM payments WHERE status = 'processing';
