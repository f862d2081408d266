-- name: RecordPSPEvent :batchone
-- Waits for a transaction that is recording the same event; no row: it is known.
INSERT INTO psp_events (event_id, type, subject) VALUES (@event_id, @type, @subject)
ON CONFLICT (event_id) DO NOTHING
RETURNING now()::timestamptz AS now;

-- name: JudgePSPEvent :batchexec
UPDATE psp_events SET verdict = @verdict WHERE event_id = @event_id;

-- name: FindPayment :one
-- Of any account, for the provider knows none; with the key that waits for its reply, if it is not settled yet.
SELECT sqlc.embed(p), k.key, k.fingerprint, k.operation
FROM payments p LEFT JOIN idempotency_keys k ON k.resource_id = p.id AND k.status = 'in_progress'
WHERE p.id = @id;

-- name: FindRefund :one
-- See FindPayment.
SELECT sqlc.embed(r), k.key, k.fingerprint, k.operation
FROM refunds r LEFT JOIN idempotency_keys k ON k.resource_id = r.id AND k.status = 'in_progress'
WHERE r.id = @id;

-- name: PurgePSPEvents :execrows
WITH old AS (
    SELECT event_id FROM psp_events
    WHERE verdict <> 'conflicting' AND received_at < now() - make_interval(secs => @age_seconds)
    ORDER BY received_at LIMIT @batch_size FOR UPDATE SKIP LOCKED
)
DELETE FROM psp_events e USING old WHERE e.event_id = old.event_id;
