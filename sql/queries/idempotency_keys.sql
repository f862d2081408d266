-- name: Now :batchone
SELECT now()::timestamptz AS now FROM accounts WHERE id = @account_id;

-- name: ProbeKey :batchone
-- No row: the key is taken, and ClaimKey would refuse it. It does not look for a refusal of a newer attempt.
SELECT now()::timestamptz AS now FROM accounts
WHERE accounts.id = @account_id AND NOT EXISTS (
    SELECT FROM idempotency_keys k WHERE k.account_id = @account_id AND k.key = @key AND k.status <> 'refused'
       AND (k.status = 'in_progress' OR greatest(k.expires_at, k.tombstone_until) > now()));

-- name: ClaimKey :batchexec
-- Claims the key and keeps its answer, in one row version. Waits for a transaction that writes the same key.
-- If the key is taken, status becomes NULL, which its column refuses, and nothing of the transaction is
-- committed. A key whose time is up is claimed as if it had been purged. A refused key is claimed by a later
-- attempt alone, and no key by an attempt that is older than refusals are kept: the comparison is made here
-- because a replica may be paused between a comparison of its own and this statement. Nor is a key claimed by an
-- attempt that is as far ahead: either its refusal would be kept too short, or it is this clock that is wrong.
INSERT INTO idempotency_keys AS k (account_id, key, fingerprint, operation, status, resource_id, resource, response_status,
    response_headers, response_body, completed_at, attempted_at, expires_at, tombstone_until, trace_parent)
VALUES (@account_id, @key, @fingerprint, @operation,
    CASE WHEN abs(extract(epoch FROM now() - @attempted_at)) < @max_age_seconds::float8 THEN @status::text END,
    sqlc.narg('resource_id'), nullif(@resource::text, ''), sqlc.narg('response_status'), sqlc.narg('response_headers'),
    sqlc.narg('response_body'), CASE WHEN @status::text IN ('completed', 'failed') THEN now() END,
    @attempted_at, now() + make_interval(secs => @ttl_seconds::float8),
    now() + make_interval(secs => nullif(@tombstone_seconds::float8, 0)), nullif(@trace_parent::text, ''))
ON CONFLICT (account_id, key) DO UPDATE SET fingerprint = excluded.fingerprint, operation = excluded.operation,
    status = CASE WHEN CASE k.status WHEN 'in_progress' THEN false
        WHEN 'refused' THEN k.attempted_at < excluded.attempted_at
        ELSE greatest(k.expires_at, k.tombstone_until) <= now() END THEN excluded.status END,
    resource_id = excluded.resource_id, resource = excluded.resource, response_status = excluded.response_status,
    response_headers = excluded.response_headers, response_body = excluded.response_body, created_at = now(),
    completed_at = excluded.completed_at, attempted_at = excluded.attempted_at, expires_at = excluded.expires_at,
    tombstone_until = excluded.tombstone_until, trace_parent = excluded.trace_parent;

-- name: GetKey :batchone
SELECT sqlc.embed(idempotency_keys), extract(epoch FROM expires_at - now())::float8 AS seconds_left
FROM idempotency_keys WHERE account_id = @account_id AND key = @key;

-- name: ReadKey :one
SELECT sqlc.embed(idempotency_keys), extract(epoch FROM expires_at - now())::float8 AS seconds_left
FROM idempotency_keys WHERE account_id = @account_id AND key = @key;

-- name: FinishKey :batchexec
-- The times count from now on, because settling may have taken days.
UPDATE idempotency_keys SET status = @status, resource = nullif(@resource::text, ''), response_status = @response_status,
    response_headers = @response_headers, response_body = @response_body, completed_at = now(),
    expires_at = now() + (expires_at - created_at), tombstone_until = now() + (tombstone_until - created_at)
WHERE account_id = @account_id AND key = @key AND status = 'in_progress';

-- name: PurgeKeys :one
-- Deletes keys whose time is up, and makes tombstones of those that moved money. A key in progress
-- stays, however old it is: it is the only way back to what was begun. The time is up when both the
-- database's clock and the caller's say so: what a wrong clock deletes is gone when it is right again.
WITH clock AS (
    SELECT least(now(), @callers_now::timestamptz) AS now
), due AS (
    SELECT account_id, key, tombstone_until FROM idempotency_keys
    WHERE status <> 'in_progress' AND expires_at <= (SELECT clock.now FROM clock)
    ORDER BY expires_at LIMIT @batch_size FOR UPDATE SKIP LOCKED
), buried AS (
    UPDATE idempotency_keys k SET status = 'expired', response_headers = NULL, response_body = NULL, trace_parent = NULL,
        expires_at = due.tombstone_until, tombstone_until = NULL
    FROM due, clock WHERE k.account_id = due.account_id AND k.key = due.key AND due.tombstone_until > clock.now
), deleted AS (
    DELETE FROM idempotency_keys k USING due, clock
    WHERE k.account_id = due.account_id AND k.key = due.key AND coalesce(due.tombstone_until <= clock.now, true)
)
SELECT count(*) FROM due;
