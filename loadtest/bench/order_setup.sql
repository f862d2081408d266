-- What loadtest/bench/order.sql needs.
INSERT INTO accounts (id, name) VALUES ('00000000-0000-7000-8000-000000000000', 'pgbench');
INSERT INTO products (account_id, sku, name, price_amount, price_currency, stock)
SELECT '00000000-0000-7000-8000-000000000000', 'pgbench-' || n, 'Bench', 100, 'USD', 1000000000 FROM generate_series(1, 1000) n;
INSERT INTO customers (id, account_id, name, email, created_at, updated_at)
SELECT ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, '00000000-0000-7000-8000-000000000000', 'Bench',
    n || '@example.com', now(), now() FROM generate_series(1, 50) n;
-- IDs that are ordered by time, as those of UUID version 7 are. One transaction has one time.
CREATE FUNCTION bench_id(n bigint) RETURNS uuid STABLE LANGUAGE sql AS $$
    SELECT (lpad(to_hex((extract(epoch FROM now()) * 1000)::bigint), 12, '0') || '7000' || lpad(to_hex(n), 16, '0'))::uuid
$$;
