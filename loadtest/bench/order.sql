-- One order as the service writes it, for pgbench: the statements of sql/queries and of the authority in
-- the same two round trips, with keys and IDs in the order of each client. A test compares the columns.
--
-- What differs: pgbench has no UUIDs and no clock, so IDs are made by bench_id in each statement that
-- names one, and texts of the usual length stand for the answer and the event. This costs PostgreSQL
-- some microseconds.
--
-- In a database without relay and consumers, after "oncepay migrate up" and order_setup.sql:
--   pgbench -n -M prepared -c 8 -j 2 -T 30 -D n=0 -D run=1 -D account=00000000-0000-7000-8000-000000000000 -f order.sql
\set n :n + 1
\set id (:run * 1000 + :client_id) * 1000000000 + :n
\set sku random(1, 1000)
\set customer random(1, 50)
\startpipeline
begin isolation level read committed read write;
-- ProbeKey
SELECT now(), NOT EXISTS (SELECT FROM idempotency_keys k WHERE account_id = :account::uuid AND key = 'pgbench-' || :id::bigint AND status <> 'refused'
    AND (status = 'in_progress' OR greatest(expires_at, tombstone_until) > now()));
-- CustomerExists
SELECT EXISTS (SELECT FROM customers WHERE account_id = :account::uuid
    AND id = ('00000000-0000-7000-8000-' || lpad(to_hex(:customer::bigint), 12, '0'))::uuid);
-- ReadProducts
SELECT * FROM products WHERE account_id = :account::uuid AND sku = ANY (ARRAY['pgbench-' || :sku::bigint]);
\endpipeline
\startpipeline
-- ClaimKey
INSERT INTO idempotency_keys AS k (account_id, key, fingerprint, operation, status, resource_id, resource,
    response_status, response_headers, response_body, completed_at, attempted_at, expires_at, tombstone_until, trace_parent)
VALUES (:account::uuid, 'pgbench-' || :id::bigint, decode(repeat('a7', 32), 'hex'), 'place_order',
    CASE WHEN now() > now() - make_interval(secs => 900::float8) THEN 'completed'::text END,
    bench_id(:id::bigint), nullif('/v1/orders/' || bench_id(:id::bigint)::text, ''), 201,
    '{"Location": ["/v1/orders/00000000-0000-0000-0000-000000000000"], "Content-Type": ["application/json"]}',
    convert_to(repeat('a', 420), 'UTF8'), CASE WHEN 'completed' IN ('completed', 'failed') THEN now() END,
    now(), now() + make_interval(secs => 86400::float8), now() + make_interval(secs => nullif(0::float8, 0)), nullif(''::text, ''))
ON CONFLICT (account_id, key) DO UPDATE SET fingerprint = excluded.fingerprint, operation = excluded.operation,
    status = CASE WHEN CASE k.status WHEN 'in_progress' THEN false
        WHEN 'refused' THEN k.attempted_at < excluded.attempted_at
        ELSE greatest(k.expires_at, k.tombstone_until) <= now() END THEN excluded.status END,
    resource_id = excluded.resource_id, resource = excluded.resource, response_status = excluded.response_status,
    response_headers = excluded.response_headers, response_body = excluded.response_body, created_at = now(),
    completed_at = excluded.completed_at, attempted_at = excluded.attempted_at, expires_at = excluded.expires_at,
    tombstone_until = excluded.tombstone_until, trace_parent = excluded.trace_parent,
    attempt = 1, taken_at = now(), due_at = NULL;
-- InsertOrder
INSERT INTO orders (id, account_id, customer_id, status, total_amount, total_currency, created_at, updated_at, expires_at)
VALUES (bench_id(:id::bigint), :account::uuid, ('00000000-0000-7000-8000-' || lpad(to_hex(:customer::bigint), 12, '0'))::uuid,
    'pending', 100, 'USD', now(), now(), now() + interval '30 minutes');
-- InsertOrderItem
INSERT INTO order_items (order_id, position, account_id, sku, name, quantity, unit_price)
VALUES (bench_id(:id::bigint), 0, :account::uuid, 'pgbench-' || :sku::bigint, 'Bench', 1, 100);
-- TakeStock
UPDATE products SET updated_at = now(), version = version + 1,
    stock = CASE WHEN price_amount = 100 AND price_currency = 'USD' THEN stock - 1 ELSE -1 END
WHERE account_id = :account::uuid AND sku = 'pgbench-' || :sku::bigint;
-- InsertEvent
INSERT INTO outbox (event_id, account_id, type, aggregate, subject, data)
VALUES (gen_random_uuid(), :account::uuid, 'order.placed', 'order', bench_id(:id::bigint), ('{"order": "' || repeat('a', 380) || '"}')::jsonb);
commit;
\endpipeline
