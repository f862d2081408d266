-- name: InsertEvent :batchexec
INSERT INTO outbox (event_id, account_id, type, aggregate, subject, data)
VALUES (@event_id, @account_id, @type, @aggregate, @subject, @data);

-- name: ClaimEvents :many
-- The first unpublished event of each subject, if it is due. As min() reads one
-- index entry, a long backlog makes this no slower.
WITH due AS (
    SELECT o.id FROM outbox o
    WHERE o.published_at IS NULL AND o.dead_at IS NULL AND o.due_at <= now()
      AND o.id = (SELECT min(earlier.id) FROM outbox earlier WHERE earlier.subject = o.subject AND earlier.published_at IS NULL)
    ORDER BY o.id LIMIT @batch_size FOR UPDATE SKIP LOCKED
)
UPDATE outbox SET claim = @claim::uuid, due_at = now() + make_interval(secs => @lease_seconds::float8)
FROM due WHERE outbox.id = due.id
RETURNING outbox.id, event_id, account_id, type, aggregate, subject, data, created_at, attempts;

-- name: MarkPublished :execrows
-- Locks in the order of IDs, like ReplayEvents, so that the two don't deadlock.
WITH held AS (SELECT o.id FROM outbox o WHERE o.id = ANY (@ids::bigint[]) AND o.claim = @claim::uuid ORDER BY o.id FOR UPDATE)
UPDATE outbox SET published_at = now(), claim = NULL, last_error = NULL FROM held WHERE outbox.id = held.id;

-- name: MarkRefused :execrows
UPDATE outbox SET claim = NULL, attempts = attempts + 1, last_error = @reason,
    due_at = now() + make_interval(secs => @pause_seconds::float8),
    dead_at = CASE WHEN @dead::boolean THEN now() END
WHERE id = @id AND claim = @claim::uuid;

-- name: ReleaseEvents :execrows
WITH held AS (SELECT o.id FROM outbox o WHERE o.published_at IS NULL AND o.claim = @claim::uuid ORDER BY o.id FOR UPDATE)
UPDATE outbox SET claim = NULL, due_at = now() FROM held WHERE outbox.id = held.id;

-- name: OutboxBacklog :one
SELECT count(*) FILTER (WHERE dead_at IS NULL) AS waiting,
    count(*) FILTER (WHERE dead_at IS NOT NULL) AS dead,
    coalesce(extract(epoch FROM now() - min(created_at) FILTER (WHERE dead_at IS NULL)), 0)::float8 AS oldest_seconds
FROM outbox WHERE published_at IS NULL;

-- name: ListUnpublished :many
-- Dead letters first, then in the order of what happened.
SELECT id, type, subject, attempts, coalesce(last_error, '')::text AS last_error,
    extract(epoch FROM now() - created_at)::float8 AS age_seconds,
    (dead_at IS NOT NULL)::boolean AS dead, (claim IS NOT NULL AND due_at > now())::boolean AS claimed,
    EXISTS (SELECT FROM outbox earlier WHERE earlier.subject = outbox.subject AND earlier.id < outbox.id
            AND earlier.published_at IS NULL AND earlier.dead_at IS NOT NULL)::boolean AS blocked
FROM outbox WHERE published_at IS NULL
ORDER BY dead_at IS NULL, id LIMIT @page_size;

-- name: RetryEvents :execrows
-- Without IDs: all dead letters, and all that pause after a refusal.
UPDATE outbox SET dead_at = NULL, attempts = 0, due_at = now()
WHERE published_at IS NULL AND claim IS NULL AND attempts > 0
  AND (cardinality(@ids::bigint[]) = 0 OR id = ANY (@ids));

-- name: ReplayEvents :execrows
-- Also takes back the claims of those that are being published: whether the
-- broker lost them too is not known.
WITH lost AS (
    SELECT o.id FROM outbox o
    WHERE o.published_at >= now() - make_interval(secs => @since_seconds::float8)
       OR (o.published_at IS NULL AND o.claim IS NOT NULL)
    ORDER BY o.id FOR UPDATE
)
UPDATE outbox SET published_at = NULL, claim = NULL, attempts = 0, due_at = now() FROM lost WHERE outbox.id = lost.id;

-- name: PurgeEvents :execrows
-- What was published long ago. Never what is to be published, again or at last, nor a dead letter.
WITH old AS (
    SELECT o.id FROM outbox o
    WHERE o.published_at < now() - make_interval(secs => @age_seconds::float8)
    ORDER BY o.published_at LIMIT @batch_size FOR UPDATE SKIP LOCKED
)
DELETE FROM outbox USING old WHERE outbox.id = old.id;
