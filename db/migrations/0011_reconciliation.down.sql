DROP INDEX idempotency_keys_begun;
ALTER TABLE refunds DROP COLUMN reconcile_at;
ALTER TABLE payments DROP COLUMN reconcile_at;
