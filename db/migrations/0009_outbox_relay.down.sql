CREATE INDEX outbox_created ON outbox (created_at);
DROP INDEX outbox_published;
DROP INDEX outbox_next;
ALTER TABLE outbox
    DROP CONSTRAINT outbox_published_is_settled,
    DROP COLUMN due_at,
    DROP COLUMN claim,
    DROP COLUMN attempts,
    DROP COLUMN last_error,
    DROP COLUMN dead_at;
