ALTER TABLE idempotency_records DROP COLUMN trace_parent;
ALTER TABLE idempotency_keys DROP COLUMN trace_parent;
