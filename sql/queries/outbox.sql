-- name: InsertEvent :batchexec
-- The column refuses a NULL: no position is drawn on a timeline that is not noted, because an event that
-- was lost may have it. Only behind a pooler can a server change under a connection.
INSERT INTO outbox (event_id, account_id, type, aggregate, subject, data)
VALUES (CASE WHEN EXISTS (SELECT FROM timelines
        WHERE number = ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer) THEN @event_id::uuid END,
    @account_id, @type, @aggregate, @subject, @data);

-- name: LeaseOutbox :one
-- Takes or renews the lease. No row: another relay holds it. A lease that is longer than two was given
-- before the clock was set back. Not than one: this transaction may have begun before the one that
-- gave the lease, and have waited for it.
UPDATE outbox_cursor SET owner = @owner::uuid, leased_until = now() + make_interval(secs => @lease_seconds::float8)
WHERE owner = @owner::uuid OR leased_until NOT BETWEEN now() AND now() + 2 * make_interval(secs => @lease_seconds::float8)
RETURNING position;

-- name: ReleaseOutbox :exec
UPDATE outbox_cursor SET owner = NULL, leased_until = '-infinity' WHERE owner = @owner::uuid;

-- name: LastDrawnPosition :one
SELECT coalesce(pg_sequence_last_value('outbox_id_seq'), 0)::bigint;

-- name: EventsBetween :many
SELECT id, event_id, account_id, type, aggregate, subject, data, created_at FROM outbox
WHERE id > @after AND id <= @last ORDER BY id LIMIT @batch_size;

-- name: AdvanceOutbox :execrows
-- Moves the cursor, if this relay holds the lease and the cursor is where the relay left it.
UPDATE outbox_cursor SET position = @position, leased_until = now() + make_interval(secs => @lease_seconds::float8)
WHERE owner = @owner::uuid AND position = @before;

-- name: OutboxBacklog :one
-- Counts up to 100,000, so that a long backlog makes it no slower.
WITH waiting AS (
    SELECT created_at FROM outbox WHERE id > (SELECT position FROM outbox_cursor) ORDER BY id LIMIT 100000
)
SELECT count(*) AS waiting, coalesce(extract(epoch FROM now() - min(created_at)), 0)::float8 AS oldest_seconds,
    (SELECT position FROM outbox_cursor)::bigint AS position
FROM waiting;

-- name: KeptEvents :many
SELECT event_id FROM outbox WHERE id = ANY (@positions::bigint[]);

-- name: ReplayEvents :one
-- Moves the cursor back before the first event of this long.
WITH replayed AS (
    SELECT count(*) AS events, min(o.id) AS first FROM outbox o, outbox_cursor c
    WHERE o.id <= c.position AND o.created_at >= now() - make_interval(secs => @since_seconds::float8)
)
UPDATE outbox_cursor SET position = least(position, coalesce(replayed.first - 1, position)) FROM replayed
RETURNING replayed.events;

-- name: PurgeEvents :execrows
-- Deletes old events that every group has handled, except dead letters. Reads only the first events.
WITH head AS (
    SELECT id, created_at FROM outbox
    WHERE id <= (SELECT least(min(g.position), (SELECT position FROM outbox_cursor)) FROM consumer_cursors g)
      AND NOT EXISTS (SELECT FROM dead_letters d WHERE d.position = outbox.id AND d.event_id = outbox.event_id)
    ORDER BY id LIMIT @batch_size
), old AS (
    SELECT o.id FROM outbox o JOIN head USING (id)
    WHERE head.created_at < now() - make_interval(secs => @age_seconds::float8) ORDER BY o.id FOR UPDATE OF o SKIP LOCKED
)
DELETE FROM outbox USING old WHERE outbox.id = old.id;
