-- name: Now :batchone
SELECT now()::timestamptz AS now FROM accounts WHERE id = @account_id;

-- name: ClaimKey :batchone
-- Waits for a transaction that is writing the same key; no row: the key is taken.
INSERT INTO idempotency_keys (account_id, key, fingerprint, operation, status, expires_at, trace_parent)
VALUES (@account_id, @key, @fingerprint, @operation, 'in_progress', now() + make_interval(secs => @ttl_seconds),
    nullif(@trace_parent::text, ''))
ON CONFLICT (account_id, key) DO NOTHING
RETURNING now()::timestamptz AS now;

-- name: GetKey :batchone
SELECT * FROM idempotency_keys WHERE account_id = @account_id AND key = @key;

-- name: ReadKey :one
SELECT * FROM idempotency_keys WHERE account_id = @account_id AND key = @key;

-- name: LockKey :batchexec
SELECT FROM idempotency_keys WHERE account_id = @account_id AND key = @key FOR NO KEY UPDATE;

-- name: PointKey :batchexec
-- So that a retry finds what the key in progress began.
UPDATE idempotency_keys SET resource_id = @resource_id WHERE account_id = @account_id AND key = @key;

-- name: FinishKey :batchexec
-- The reply is kept for as long as was promised, from now on: settling may have taken days.
UPDATE idempotency_keys SET status = @status, response_status = @response_status, response_headers = @response_headers,
    response_body = @response_body, completed_at = now(), expires_at = now() + (expires_at - created_at)
WHERE account_id = @account_id AND key = @key AND status = 'in_progress';

-- name: PurgeKeys :execrows
-- What is in progress stays, however old: it is the only way back to what was begun.
WITH expired AS (
    SELECT account_id, key FROM idempotency_keys
    WHERE status <> 'in_progress' AND expires_at <= now()
    ORDER BY expires_at LIMIT @batch_size FOR UPDATE SKIP LOCKED
)
DELETE FROM idempotency_keys k USING expired WHERE k.account_id = expired.account_id AND k.key = expired.key;
