-- The attempt at a payment or refund is counted in its key's row alone, and what is due is looked for there. The columns stay for
-- replicas of the release before, which compare both numbers. See docs/decisions/0024.
ALTER TABLE payments ALTER COLUMN attempt SET DEFAULT 1;
ALTER TABLE refunds ALTER COLUMN attempt SET DEFAULT 1;
