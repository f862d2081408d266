-- When an operation whose outcome is unknown is driven forward again. NULL: an
-- attempt may be under way, and updated_at says since when.
ALTER TABLE payments ADD COLUMN reconcile_at timestamptz;
ALTER TABLE refunds ADD COLUMN reconcile_at timestamptz;

-- From what was begun at the provider to the key that waits for its reply.
CREATE UNIQUE INDEX idempotency_keys_begun ON idempotency_keys (resource_id)
    WHERE status = 'in_progress' AND resource_id IS NOT NULL;
