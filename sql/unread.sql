-- Columns that this release neither reads nor writes, so that the next one can drop them: a statement names what its release's
-- schema has. sqlc reads this after the migrations.
ALTER TABLE payments DROP COLUMN attempt, DROP COLUMN reconcile_at;
ALTER TABLE refunds DROP COLUMN attempt, DROP COLUMN reconcile_at;
