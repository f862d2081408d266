-- The outbox is append-only: rows are inserted by the transaction that made the
-- event happen, never updated, and deleted when every consumer group had them.
-- What is published is what lies at or before the relay's cursor.
--
-- Existing events get new IDs, the published ones first, so that one cursor
-- separates them from the others. What a consumer had stays known. An event that
-- is in the stream but had no effect yet is published again, with its new ID.
-- This copies the table, so it takes a while where many events are kept.

ALTER TABLE outbox RENAME TO outbox_before;
ALTER INDEX outbox_pkey RENAME TO outbox_before_pkey;
ALTER SEQUENCE outbox_id_seq RENAME TO outbox_before_id_seq;
CREATE TABLE outbox (
    -- The event's position. Drawn under the lock of the subject's row, so the positions
    -- of one subject are in the order of what happened. The sequence must have CACHE 1,
    -- its default: a session that draws positions in advance would use them later.
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id   uuid NOT NULL, -- what a consumer outside of this database deduplicates by
    account_id uuid NOT NULL,
    type       text NOT NULL,
    aggregate  text NOT NULL,
    subject    uuid NOT NULL,
    data       jsonb NOT NULL CHECK (octet_length(data::text) <= 65536), -- so that no broker refuses it
    created_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO outbox (event_id, account_id, type, aggregate, subject, data, created_at)
SELECT event_id, account_id, type, aggregate, subject, data, created_at
FROM outbox_before ORDER BY published_at IS NULL, outbox_before.id;

-- The one relay that holds the lease publishes what follows the cursor.
CREATE TABLE outbox_cursor (
    singleton    boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    position     bigint NOT NULL DEFAULT 0, -- every event at or before it is published
    owner        uuid,                      -- the fence: only this relay may move the cursor
    leased_until timestamptz NOT NULL DEFAULT '-infinity'
);
INSERT INTO outbox_cursor (position) SELECT count(*) FROM outbox_before WHERE published_at IS NOT NULL;

-- What each consumer group has had. At or before its cursor: every event of the
-- types that it consumes, so what comes from there again is a repetition.
CREATE TABLE consumer_cursors (
    consumer  text PRIMARY KEY CHECK (consumer <> ''),
    position  bigint NOT NULL DEFAULT 0,
    -- The inbox is purged up to where the cursor was a minute ago: no statement can
    -- still run that read the cursor before that.
    purgeable bigint NOT NULL DEFAULT 0,
    noted     bigint NOT NULL DEFAULT 0,              -- the position at noted_at, purgeable a minute later
    noted_at  timestamptz NOT NULL DEFAULT '-infinity'
);
INSERT INTO consumer_cursors (consumer) VALUES ('order-confirmations'), ('warehouse-notices');

-- After its cursor: the events in its inbox. A row is written by the transaction
-- of the effect. Position and event_id together, because a failover that lost
-- commits can draw a position twice.
ALTER TABLE inbox RENAME TO inbox_before;
ALTER INDEX inbox_pkey RENAME TO inbox_before_pkey;
CREATE TABLE inbox (
    consumer   text NOT NULL CHECK (consumer <> ''),
    position   bigint NOT NULL,
    event_id   uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (consumer, position, event_id)
);
INSERT INTO inbox (consumer, position, event_id, created_at)
SELECT i.consumer, o.id, i.event_id, i.created_at FROM inbox_before i JOIN outbox o USING (event_id);

-- Events that a consumer refused because of their content. Other events do not wait for them. They are
-- tried again at retry_at, and after too many attempts only after `oncepay outbox retry`.
CREATE TABLE dead_letters (
    consumer   text NOT NULL,
    position   bigint NOT NULL,
    event_id   uuid NOT NULL,
    attempts   integer NOT NULL DEFAULT 1,
    last_error text NOT NULL,
    retry_at   timestamptz, -- NULL: dead
    PRIMARY KEY (consumer, position, event_id)
);

DROP TABLE outbox_before;
DROP TABLE inbox_before;
