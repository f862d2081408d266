-- name: InsertProviderEvent :batchone
-- Waits for a transaction that inserts the same event. No row: the event was received before.
INSERT INTO provider_events (event_id, type, subject) VALUES (@event_id, @type, @subject)
ON CONFLICT (event_id) DO NOTHING
RETURNING now()::timestamptz AS now;

-- name: SetProviderEventVerdict :batchexec
UPDATE provider_events SET verdict = @verdict WHERE event_id = @event_id;

-- name: FindPayment :one
-- Of any account, because the provider knows none; with the key that waits for the reply, unless it is settled.
SELECT sqlc.embed(p), k.key, k.fingerprint, k.operation
FROM payments p LEFT JOIN idempotency_keys k ON k.resource_id = p.id AND k.status = 'in_progress'
WHERE p.id = @id;

-- name: FindRefund :one
-- See FindPayment.
SELECT sqlc.embed(r), k.key, k.fingerprint, k.operation
FROM refunds r LEFT JOIN idempotency_keys k ON k.resource_id = r.id AND k.status = 'in_progress'
WHERE r.id = @id;

-- name: PurgeProviderEvents :execrows
WITH old AS (
    SELECT event_id FROM provider_events
    WHERE verdict <> 'conflicting' AND received_at < now() - make_interval(secs => @age_seconds)
    ORDER BY received_at LIMIT @batch_size FOR UPDATE SKIP LOCKED
)
DELETE FROM provider_events e USING old WHERE e.event_id = old.event_id;
