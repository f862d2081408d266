-- name: SeedAccount :exec
WITH account AS (
    INSERT INTO accounts (id, name) VALUES (@id, @name) ON CONFLICT (id) DO NOTHING
)
INSERT INTO api_keys (hash, account_id) VALUES (@key_hash, @id) ON CONFLICT (hash) DO NOTHING;

-- name: SeedProduct :exec
INSERT INTO products (account_id, sku, name, price_amount, price_currency, stock)
VALUES (@account_id, @sku, @name, @price_amount, @price_currency, @stock)
ON CONFLICT (account_id, sku) DO NOTHING;

-- name: CountValidKeys :one
SELECT count(*) FROM api_keys WHERE hash = ANY (@hashes::bytea[]) AND revoked_at IS NULL;
