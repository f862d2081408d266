-- The histories of commits that this database has continued (PostgreSQL manual, "Timelines"). A
-- standby that is promoted and a backup that is restored begin another one, which may lack the last
-- commits of the one before. A row is written by the first connection to a timeline, before
-- anything else is done there.
CREATE TABLE timelines (
    system    bigint NOT NULL,  -- the system identifier, which initdb draws
    number    integer NOT NULL,
    begun_at  timestamptz NOT NULL DEFAULT now(),
    published bigint NOT NULL,  -- the relay's cursor then: events after it may have been lost
    PRIMARY KEY (system, number)
);
INSERT INTO timelines (system, number, published)
SELECT system_identifier, ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer, position
FROM pg_control_system(), outbox_cursor;
