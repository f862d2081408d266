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
    decline_code, provider_id, attempt, created_at, updated_at)
VALUES (@id, @account_id, @order_id, @customer_id, @method, @token, @amount, @currency, @refunded, @status,
    @decline_code, @provider_id, @attempt, @created_at, @updated_at);

-- name: ResumePayment :batchone
-- The next attempt of the payment that a key in progress began, and with it the fence for all earlier ones. The authority
-- then takes that of the key, in the same transaction.
UPDATE payments SET attempt = attempt + 1, updated_at = now(), reconcile_at = NULL
WHERE payments.status = 'processing' AND id = (SELECT k.resource_id FROM idempotency_keys k
    WHERE k.account_id = @account_id AND k.key = @key AND k.fingerprint = @fingerprint AND k.status = 'in_progress')
RETURNING *;

-- name: SettlePayment :batchexec
-- The caller has compared status and attempt under the row's lock: that is the fence. The row count of a
-- batch is not read, so the condition here only repeats the fence.
UPDATE payments SET status = @status, decline_code = @decline_code, provider_id = @provider_id, updated_at = @updated_at
WHERE account_id = @account_id AND id = @id AND status = 'processing' AND attempt = @attempt;

-- name: SetRefunded :batchexec
UPDATE payments SET refunded = @refunded, updated_at = @updated_at WHERE account_id = @account_id AND id = @id;

-- name: TakePayments :many
-- Takes the next attempt of payments that no attempt works on. An older attempt that is still running
-- can then no longer settle. Settling also finishes the key, so the key is returned, too. The key's row has a number of
-- its own: see docs/decisions/0024.
WITH due AS (
    SELECT p.id, k.key, k.fingerprint, k.operation
    FROM payments p JOIN idempotency_keys k ON k.resource_id = p.id AND k.status = 'in_progress'
    WHERE p.status = 'processing' AND coalesce(p.reconcile_at, p.updated_at + make_interval(secs => @grace_seconds)) <= now()
    ORDER BY p.updated_at LIMIT @batch_size FOR NO KEY UPDATE OF p SKIP LOCKED
), fenced AS (
    UPDATE idempotency_keys k SET attempt = k.attempt + 1, taken_at = now(), due_at = NULL
    FROM due WHERE k.resource_id = due.id AND k.status = 'in_progress'
    RETURNING k.resource_id, k.attempt
)
UPDATE payments SET attempt = payments.attempt + 1, updated_at = now(), reconcile_at = NULL
FROM due JOIN fenced ON fenced.resource_id = due.id WHERE payments.id = due.id
RETURNING sqlc.embed(payments), due.key, due.fingerprint, due.operation, fenced.attempt AS key_attempt;

-- name: PutOffPayment :execrows
-- Only the newest attempt may say when the next one is due, and which of the provider's charges is the payment's.
WITH put_off AS (
    UPDATE payments SET reconcile_at = now() + make_interval(secs => @wait_seconds), provider_id = coalesce(nullif(@provider_id::text, ''), provider_id)
    WHERE payments.account_id = @account_id AND payments.id = @id AND payments.status = 'processing' AND payments.attempt = @attempt RETURNING payments.id
)
UPDATE idempotency_keys k SET due_at = now() + make_interval(secs => @wait_seconds)
FROM put_off WHERE k.resource_id = put_off.id AND k.status = 'in_progress';


-- name: CountPayments :many
-- What is settled only as far back as the figure says; what is processing may be older, and is never much.
SELECT status, count(*) AS payments FROM payments
WHERE status <> 'processing' AND created_at > now() - make_interval(secs => @since_seconds) GROUP BY status
UNION ALL
SELECT 'processing', count(*) FROM payments WHERE status = 'processing';

-- name: CountUnsettled :one
SELECT count(*) AS processing,
    count(*) FILTER (WHERE created_at < now() - make_interval(secs => @deadline_seconds)) AS overdue,
    coalesce(extract(epoch FROM now() - min(created_at)), 0)::double precision AS oldest_seconds
FROM (SELECT p.created_at FROM payments p WHERE p.status = 'processing'
      UNION ALL SELECT r.created_at FROM refunds r WHERE r.status = 'processing') AS unsettled;
