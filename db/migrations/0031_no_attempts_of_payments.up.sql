-- Attempts are counted in the rows of keys. The release before neither reads nor writes these columns. See docs/decisions/0024.
ALTER TABLE payments DROP COLUMN attempt, DROP COLUMN reconcile_at;
ALTER TABLE refunds DROP COLUMN attempt, DROP COLUMN reconcile_at;
