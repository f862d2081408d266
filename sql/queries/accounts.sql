-- name: AccountByKeyHash :one
SELECT accounts.id, accounts.name
FROM api_keys JOIN accounts ON accounts.id = api_keys.account_id
WHERE api_keys.hash = @hash AND api_keys.revoked_at IS NULL;
