-- name: Now :batchone
SELECT now()::timestamptz AS now FROM accounts WHERE id = @account_id;

-- name: ClaimKey :batchone
-- Waits for a transaction that is writing the same key; no row: the key is taken.
INSERT INTO idempotency_keys (account_id, key, fingerprint, operation, status, expires_at)
VALUES (@account_id, @key, @fingerprint, @operation, 'in_progress', now() + make_interval(secs => @ttl_seconds))
ON CONFLICT (account_id, key) DO NOTHING
RETURNING now()::timestamptz AS now;

-- name: GetKey :batchone
SELECT * FROM idempotency_keys WHERE account_id = @account_id AND key = @key;

-- name: LockKey :batchexec
SELECT FROM idempotency_keys WHERE account_id = @account_id AND key = @key FOR NO KEY UPDATE;

-- name: PointKey :batchexec
-- So that a retry finds what the key in progress began.
UPDATE idempotency_keys SET resource_id = @resource_id WHERE account_id = @account_id AND key = @key;

-- name: FinishKey :batchexec
UPDATE idempotency_keys SET status = @status, response_status = @response_status, response_headers = @response_headers,
    response_body = @response_body, completed_at = now()
WHERE account_id = @account_id AND key = @key AND status = 'in_progress';
