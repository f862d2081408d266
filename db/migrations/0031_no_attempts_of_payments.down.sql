ALTER TABLE refunds ADD COLUMN attempt integer NOT NULL DEFAULT 1 CHECK (attempt > 0), ADD COLUMN reconcile_at timestamptz;
ALTER TABLE payments ADD COLUMN attempt integer NOT NULL DEFAULT 1 CHECK (attempt > 0), ADD COLUMN reconcile_at timestamptz;
