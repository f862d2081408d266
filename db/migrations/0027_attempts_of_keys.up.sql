-- The number of the attempt at what a key began at the provider, as in payments.attempt and refunds.attempt. Replicas of the release
-- before count only those; this one writes and compares both. See docs/decisions/0024.
ALTER TABLE idempotency_keys
    ADD COLUMN attempt  integer NOT NULL DEFAULT 1,
    ADD COLUMN taken_at timestamptz NOT NULL DEFAULT now(), -- when the newest attempt was taken
    ADD COLUMN due_at   timestamptz; -- when the next one is due. NULL: one may be under way. infinity: held
