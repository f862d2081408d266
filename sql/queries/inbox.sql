-- Events come as columns of the same length: position and ID alone. Type, account and subject are
-- those of the outbox's row, because whoever may write to Redis can relabel an entry of the stream.
-- An event that comes again, or lies at or before the group's cursor and is no dead letter, has no
-- effect; nor has one of another group's type, nor one that the outbox does not have, because a
-- failover has lost what it tells of. None of them is a dead letter from then on. Rows are locked in
-- the order of positions, so that two batches don't deadlock.

-- name: ConfirmOrders :execrows
-- Of an order that was placed, and of one that was paid: each has its own group.
WITH came AS (
    SELECT DISTINCT unnest(@positions::bigint[]) AS position, unnest(@event_ids::uuid[]) AS event_id
), new AS (
    INSERT INTO inbox (consumer, position, event_id)
    SELECT @consumer::text, came.position, came.event_id FROM came JOIN outbox o ON o.id = came.position AND o.event_id = came.event_id
    WHERE o.type = ANY (@types::text[])
      AND (came.position > coalesce((SELECT c.position FROM consumer_cursors c WHERE c.consumer = @consumer), 0)
       OR came.event_id IN (SELECT d.event_id FROM dead_letters d WHERE d.consumer = @consumer))
    ORDER BY came.position ON CONFLICT DO NOTHING RETURNING position, event_id
), revived AS (
    DELETE FROM dead_letters d USING came WHERE d.consumer = @consumer AND d.position = came.position AND d.event_id = came.event_id
)
INSERT INTO order_confirmations (account_id, order_id, event_id, type, due_at)
SELECT o.account_id, o.subject, o.event_id, o.type, CASE WHEN @by_mail::boolean THEN now() END
FROM new JOIN outbox o ON o.id = new.position AND o.event_id = new.event_id ORDER BY position;

-- name: NoticeWarehouse :execrows
WITH came AS (
    SELECT DISTINCT unnest(@positions::bigint[]) AS position, unnest(@event_ids::uuid[]) AS event_id
), new AS (
    INSERT INTO inbox (consumer, position, event_id)
    SELECT @consumer::text, came.position, came.event_id FROM came JOIN outbox o ON o.id = came.position AND o.event_id = came.event_id
    WHERE o.type = ANY (@types::text[])
      AND (came.position > coalesce((SELECT c.position FROM consumer_cursors c WHERE c.consumer = @consumer), 0)
       OR came.event_id IN (SELECT d.event_id FROM dead_letters d WHERE d.consumer = @consumer))
    ORDER BY came.position ON CONFLICT DO NOTHING RETURNING position, event_id
), revived AS (
    DELETE FROM dead_letters d USING came WHERE d.consumer = @consumer AND d.position = came.position AND d.event_id = came.event_id
)
INSERT INTO warehouse_notices (account_id, order_id)
SELECT o.account_id, o.subject FROM new JOIN outbox o ON o.id = new.position AND o.event_id = new.event_id ORDER BY position;

-- name: AdvanceConsumer :one
-- Moves a group's cursor over what is complete among the next published events:
-- up to before the first one of its types that is neither in its inbox nor a dead
-- letter. A new group begins with the first event that is kept. Once a minute it
-- notes the position, which is purgeable a minute later.
WITH here AS (
    SELECT coalesce((SELECT c.position FROM consumer_cursors c WHERE c.consumer = @consumer), 0) AS position
), next AS (
    SELECT o.id, o.type, o.event_id FROM outbox o
    WHERE o.id > (SELECT position FROM here) AND o.id <= (SELECT position FROM outbox_cursor) ORDER BY o.id LIMIT @batch_size
), bound AS (
    SELECT coalesce(
        (SELECT min(n.id) - 1 FROM next n WHERE n.type = ANY (@types::text[])
            AND NOT EXISTS (SELECT FROM inbox i WHERE i.consumer = @consumer AND i.position = n.id AND i.event_id = n.event_id)
            AND NOT EXISTS (SELECT FROM dead_letters d WHERE d.consumer = @consumer AND d.position = n.id AND d.event_id = n.event_id)),
        (SELECT max(n.id) FROM next n), here.position) AS position FROM here
), moved AS (
    INSERT INTO consumer_cursors AS c (consumer, position) SELECT @consumer::text, bound.position FROM bound
    WHERE NOT EXISTS (SELECT FROM consumer_cursors now WHERE now.consumer = @consumer AND now.position >= bound.position
        AND now.noted_at > now() - interval '1 minute')
    ON CONFLICT (consumer) DO UPDATE SET position = greatest(c.position, excluded.position),
        purgeable = CASE WHEN c.noted_at <= now() - interval '1 minute' THEN c.noted ELSE c.purgeable END,
        noted = CASE WHEN c.noted_at <= now() - interval '1 minute' THEN c.position ELSE c.noted END,
        noted_at = CASE WHEN c.noted_at <= now() - interval '1 minute' THEN now() ELSE c.noted_at END
)
SELECT bound.position::bigint AS position, (SELECT count(*) FROM next)::bigint AS seen,
    (bound.position < coalesce((SELECT max(n.id) FROM next n), 0))::boolean AS incomplete FROM bound;

-- name: MissingEvents :many
-- Published events that the group has not had, between two positions.
SELECT o.id, o.event_id, o.account_id, o.type, o.aggregate, o.subject, o.data, o.created_at FROM outbox o
WHERE o.id > @after AND o.id <= @last
  AND o.type = ANY (@types::text[])
  AND NOT EXISTS (SELECT FROM inbox i WHERE i.consumer = @consumer AND i.position = o.id AND i.event_id = o.event_id)
  AND NOT EXISTS (SELECT FROM dead_letters d WHERE d.consumer = @consumer AND d.position = o.id AND d.event_id = o.event_id)
ORDER BY o.id LIMIT @batch_size;

-- name: ConsumerLag :one
-- Counts the events of the group's types after its cursor that it has not had, among
-- the first 100,000.
WITH next AS (
    SELECT o.id, o.event_id, o.created_at FROM outbox o
    WHERE o.id > coalesce((SELECT c.position FROM consumer_cursors c WHERE c.consumer = @consumer), 0)
      AND o.type = ANY (@types::text[])
    ORDER BY o.id LIMIT 100000
), waiting AS (
    SELECT n.created_at FROM next n
    WHERE NOT EXISTS (SELECT FROM inbox i WHERE i.consumer = @consumer AND i.position = n.id AND i.event_id = n.event_id)
)
SELECT count(*) AS events, coalesce(extract(epoch FROM now() - min(created_at)), 0)::float8 AS oldest_seconds,
    coalesce((SELECT c.position FROM consumer_cursors c WHERE c.consumer = @consumer), 0)::bigint AS position,
    (SELECT count(*) FROM dead_letters d WHERE d.consumer = @consumer AND d.retry_at IS NOT NULL) AS retrying,
    (SELECT count(*) FROM dead_letters d WHERE d.consumer = @consumer AND d.retry_at IS NULL) AS dead FROM waiting;

-- name: PurgeInbox :execrows
-- Only what its group's cursor passed so long ago that no statement can still run that
-- read an older cursor. Looks at each group's first rows alone.
WITH head AS (
    SELECT i.consumer, i.position, i.event_id, i.created_at FROM consumer_cursors c CROSS JOIN LATERAL (
        SELECT * FROM inbox WHERE inbox.consumer = c.consumer AND inbox.position <= c.purgeable
        ORDER BY inbox.position LIMIT @batch_size) i
), old AS (
    SELECT i.consumer, i.position, i.event_id FROM inbox i JOIN head USING (consumer, position, event_id)
    WHERE head.created_at < now() - make_interval(secs => @age_seconds::float8) LIMIT @batch_size FOR UPDATE OF i SKIP LOCKED
)
DELETE FROM inbox USING old
WHERE inbox.consumer = old.consumer AND inbox.position = old.position AND inbox.event_id = old.event_id;
