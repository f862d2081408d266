-- Events wait here, written by the transaction that made them happen, until
-- they are published. All events of a subject are written under the lock of its
-- row, so their IDs are in the order of what happened to it.
CREATE TABLE outbox (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id     uuid NOT NULL UNIQUE, -- what a consumer deduplicates by
    account_id   uuid NOT NULL REFERENCES accounts (id),
    type         text NOT NULL,
    aggregate    text NOT NULL,
    subject      uuid NOT NULL,
    data         jsonb NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    published_at timestamptz
);
CREATE INDEX outbox_unpublished ON outbox (id) WHERE published_at IS NULL;
CREATE INDEX outbox_created ON outbox (created_at); -- for sending again what a broker lost
