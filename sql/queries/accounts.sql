-- name: APIKeysVersion :one
SELECT version FROM api_keys_version;

-- name: APIKeys :many
-- LIMIT comes before every filter and join, so that the plan reads no rows of other pages, whatever the statistics.
SELECT k.hash, k.account_id, k.read_only, k.expires_at, (a.suspended_at IS NOT NULL)::boolean AS suspended,
    (k.revoked_at IS NOT NULL OR (k.expires_at <= now()) IS TRUE)::boolean AS ended
FROM (SELECT * FROM api_keys WHERE hash > @after ORDER BY hash LIMIT @page_size) k
JOIN accounts a ON a.id = k.account_id ORDER BY k.hash;

-- name: AddAccount :exec
INSERT INTO accounts (id, name) VALUES (@id, @name);

-- name: SuspendAccount :execrows
UPDATE accounts SET suspended_at = CASE WHEN @suspended::boolean THEN now() END WHERE id = @id;

-- name: IssueAPIKey :execrows
INSERT INTO api_keys (hash, prefix, account_id, read_only, expires_at)
SELECT @hash, @prefix, id, @read_only, sqlc.narg('expires_at') FROM accounts WHERE id = @account_id;

-- name: RevokeAPIKey :execrows
UPDATE api_keys SET revoked_at = now() WHERE prefix = @prefix AND revoked_at IS NULL;

-- name: RotateAPIKey :execrows
-- The new key has the rights and the end of the old one, which ends after a while. A key that has ended stays ended.
WITH old AS (
    SELECT o.hash, o.account_id, o.read_only, o.expires_at FROM api_keys o
    WHERE o.prefix = @old_prefix AND o.revoked_at IS NULL AND coalesce(o.expires_at > now(), true) FOR UPDATE
), ended AS (
    UPDATE api_keys AS k SET expires_at = least(k.expires_at, now() + make_interval(secs => @grace_seconds::float8))
    FROM old WHERE k.hash = old.hash
)
INSERT INTO api_keys (hash, prefix, account_id, read_only, expires_at)
SELECT @hash, @prefix, old.account_id, old.read_only, old.expires_at FROM old;

-- name: ListAPIKeys :many
SELECT coalesce(k.prefix, '')::text AS prefix, a.id AS account_id, a.name, k.read_only, k.created_at, k.expires_at, k.revoked_at, a.suspended_at
FROM api_keys k JOIN accounts a ON a.id = k.account_id ORDER BY a.name, a.id, k.created_at, k.hash;

-- name: AccountExists :batchone
SELECT true AS found FROM accounts WHERE id = @account_id;
