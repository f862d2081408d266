-- What loadtest/bench/millions.go fills the tables with. Names that begin with a colon are replaced.

-- fill
-- Constraints were checked when such orders were placed; and a loss of this database does no harm.
SET session_replication_role = replica;
SET synchronous_commit = off;
INSERT INTO orders (id, account_id, customer_id, status, total_amount, total_currency, created_at, updated_at, expires_at)
SELECT ('01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, c.account_id, c.id, 'paid', 100, 'USD',
    now() - interval '30 days', now() - interval '30 days', now() - interval '30 days'
FROM customers c, generate_series(1, :orders) n WHERE c.id = ':customer';
INSERT INTO order_items (order_id, position, account_id, sku, name, quantity, unit_price)
SELECT ('01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 0, c.account_id, 'bench', 'Bench', 1, 100
FROM customers c, generate_series(1, :orders) n WHERE c.id = ':customer';
-- In the order of the keys, so that the index of random keys grows at one place at a time.
INSERT INTO idempotency_keys (account_id, key, fingerprint, operation, status, resource_id, resource, response_status, response_headers,
    response_body, completed_at, expires_at)
SELECT c.account_id, made.key, decode(repeat('a7', 32), 'hex'), 'place_order', 'completed', c.id, '/v1/orders/' || c.id, 201,
    '{"Location": ["/v1/orders/00000000-0000-0000-0000-000000000000"], "Content-Type": ["application/json"]}',
    convert_to(repeat('a', 420), 'UTF8'), now(), now() + interval '2 hours' + interval '22 hours' * (made.digit + random()) / 16
FROM customers c, (
    SELECT n * 16 / (:keys + 1) AS digit, to_hex(n * 16 / (:keys + 1)) || substr(md5(n::text), 1, 15) || '-' || n AS key
    FROM generate_series(1, :keys::bigint) n ORDER BY 2
) made WHERE c.id = ':customer';

-- vacuum
-- What autovacuum has long done when that many orders have come one by one.
VACUUM (ANALYZE) orders, order_items, idempotency_keys;

-- checkpoint
CHECKPOINT;

-- expired
INSERT INTO idempotency_keys (account_id, key, fingerprint, operation, status, resource_id, resource, response_status, response_headers,
    response_body, completed_at, expires_at)
SELECT c.account_id, substr(md5('expired' || n), 1, 16), decode(repeat('a7', 32), 'hex'), 'place_order', 'completed', c.id, '/v1/orders/' || c.id,
    201, '{"Location": ["/v1/orders/00000000-0000-0000-0000-000000000000"], "Content-Type": ["application/json"]}',
    convert_to(repeat('a', 420), 'UTF8'), now() - interval '1 day', now() - interval '1 hour' + n * interval '1 millisecond'
FROM customers c, generate_series(1, :some) n WHERE c.id = ':customer';

-- backlog
INSERT INTO outbox (event_id, account_id, type, aggregate, subject, data)
SELECT gen_random_uuid(), ':account', CASE n % 2 WHEN 0 THEN 'order.placed' ELSE 'payment.succeeded' END, 'order',
    ('01900000-0000-7000-8000-' || lpad(to_hex(n / 2), 12, '0'))::uuid, ('{"order": "' || repeat('a', 380) || '"}')::jsonb
FROM generate_series(1, :some) n;
