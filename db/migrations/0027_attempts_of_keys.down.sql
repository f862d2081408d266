ALTER TABLE idempotency_keys DROP COLUMN due_at, DROP COLUMN taken_at, DROP COLUMN attempt;
