-- Back to one row per event that is updated. IDs stay the positions.
ALTER TABLE outbox RENAME TO outbox_after;
ALTER INDEX outbox_pkey RENAME TO outbox_after_pkey;
ALTER SEQUENCE outbox_id_seq RENAME TO outbox_after_id_seq;
CREATE TABLE outbox (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id     uuid NOT NULL UNIQUE,
    account_id   uuid NOT NULL REFERENCES accounts (id),
    type         text NOT NULL,
    aggregate    text NOT NULL,
    subject      uuid NOT NULL,
    data         jsonb NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    published_at timestamptz,
    due_at       timestamptz NOT NULL DEFAULT now(),
    claim        uuid,
    attempts     integer NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    last_error   text,
    dead_at      timestamptz,
    CONSTRAINT outbox_published_is_settled CHECK (published_at IS NULL OR num_nonnulls(claim, dead_at) = 0)
);
INSERT INTO outbox (id, event_id, account_id, type, aggregate, subject, data, created_at, published_at)
OVERRIDING SYSTEM VALUE
SELECT o.id, event_id, account_id, type, aggregate, subject, data, created_at,
    CASE WHEN o.id <= c.position THEN created_at END
FROM outbox_after o CROSS JOIN outbox_cursor c;
SELECT setval('outbox_id_seq', nextval('outbox_after_id_seq'));
CREATE INDEX outbox_unpublished ON outbox (id) WHERE published_at IS NULL;
CREATE INDEX outbox_next ON outbox (subject, id) WHERE published_at IS NULL;
CREATE INDEX outbox_published ON outbox (published_at) WHERE published_at IS NOT NULL;

-- What lies at or before a group's cursor has had its effect, and is remembered
-- by its event again.
ALTER TABLE inbox RENAME TO inbox_after;
ALTER INDEX inbox_pkey RENAME TO inbox_after_pkey;
CREATE TABLE inbox (
    consumer   text NOT NULL CHECK (consumer <> ''),
    event_id   uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (consumer, event_id)
);
INSERT INTO inbox (consumer, event_id, created_at) SELECT consumer, event_id, created_at FROM inbox_after;
INSERT INTO inbox (consumer, event_id)
SELECT c.consumer, o.event_id FROM consumer_cursors c JOIN outbox o ON o.id <= c.position ON CONFLICT DO NOTHING;
CREATE INDEX inbox_created ON inbox (created_at);

DROP TABLE dead_letters;
DROP TABLE inbox_after;
DROP TABLE consumer_cursors;
DROP TABLE outbox_cursor;
DROP TABLE outbox_after;
