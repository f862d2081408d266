-- name: RefuseEvent :one
-- An event that had its effect meanwhile is no dead letter: it is in the inbox, or the cursor has
-- passed it so long ago that the inbox was purged.
INSERT INTO dead_letters AS d (consumer, position, event_id, last_error, retry_at)
SELECT @consumer::text, @position::bigint, @event_id::uuid, @reason::text, now() + interval '1 second'
WHERE NOT EXISTS (SELECT FROM inbox i WHERE i.consumer = @consumer AND i.position = @position AND i.event_id = @event_id)
  AND (@position > coalesce((SELECT c.position FROM consumer_cursors c WHERE c.consumer = @consumer), 0)
    OR EXISTS (SELECT FROM dead_letters x WHERE x.consumer = @consumer AND x.position = @position AND x.event_id = @event_id))
ON CONFLICT (consumer, position, event_id) DO UPDATE SET attempts = d.attempts + 1, last_error = excluded.last_error,
    retry_at = CASE WHEN d.attempts + 1 < @max_attempts::int THEN now() + least(interval '1 minute', interval '1 second' * 2 ^ d.attempts) END
RETURNING attempts;

-- name: TakeDueDeadLetters :many
-- Refused events whose pause is over. They pause anew, so that each is published once.
WITH due AS (
    UPDATE dead_letters SET retry_at = now() + interval '1 minute'
    WHERE retry_at <= now() RETURNING position, event_id
)
SELECT o.id, o.event_id, o.account_id, o.type, o.aggregate, o.subject, o.data, o.created_at
FROM outbox o JOIN due ON o.id = due.position AND o.event_id = due.event_id ORDER BY o.id;

-- name: ListDeadLetters :many
SELECT d.consumer, d.position, d.attempts, d.last_error, d.retry_at, o.type, o.subject,
    extract(epoch FROM now() - o.created_at)::float8 AS age_seconds
FROM dead_letters d JOIN outbox o ON o.id = d.position AND o.event_id = d.event_id
ORDER BY d.retry_at IS NOT NULL, d.position LIMIT @page_size;

-- name: RetryDeadLetters :many
-- Without positions: all.
UPDATE dead_letters SET attempts = 0, retry_at = now()
WHERE cardinality(@positions::bigint[]) = 0 OR position = ANY (@positions) RETURNING position;
