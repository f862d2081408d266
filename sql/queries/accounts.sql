-- name: APIKeysVersion :one
SELECT version FROM api_keys_version;

-- name: APIKeys :many
SELECT k.hash, k.account_id, k.read_only, k.expires_at, (a.suspended_at IS NOT NULL)::boolean AS suspended
FROM api_keys k JOIN accounts a ON a.id = k.account_id
WHERE k.hash > @after AND k.revoked_at IS NULL AND (k.expires_at > now()) IS NOT FALSE
ORDER BY k.hash LIMIT @page_size;
