-- name: MailsOverdue :one
-- For how long the earliest mail has been due; below zero if none is.
SELECT coalesce(extract(epoch FROM now() - min(due_at)), -1)::float8 AS seconds FROM order_confirmations WHERE due_at <= now();

-- name: TakeMails :many
-- Takes mails that are due, for a time, in which no other replica takes them.
WITH due AS (
    SELECT id FROM order_confirmations WHERE due_at <= now() ORDER BY due_at LIMIT @batch_size FOR UPDATE SKIP LOCKED
), taken AS (
    UPDATE order_confirmations c SET due_at = now() + make_interval(secs => @taken_seconds::float8), attempts = c.attempts + 1
    FROM due WHERE c.id = due.id
    RETURNING c.id, c.account_id, c.order_id, c.event_id, c.type, c.created_at, c.attempts
)
SELECT taken.id, taken.order_id, taken.event_id::uuid AS event_id, taken.type, taken.created_at, taken.attempts,
    o.total_amount, o.total_currency, c.name, c.email
FROM taken JOIN orders o ON o.account_id = taken.account_id AND o.id = taken.order_id
    JOIN customers c ON c.account_id = o.account_id AND c.id = o.customer_id
ORDER BY taken.id;

-- name: SettleMails :exec
-- A mail that was sent stays sent: another replica may have taken it, and know less. An attempt that did not begin does not
-- count. Without a pause (below zero) the mail is never due again.
UPDATE order_confirmations c SET sent_at = CASE WHEN settled.sent THEN now() END,
    due_at = CASE WHEN settled.pause >= 0 THEN now() + make_interval(secs => settled.pause) END,
    attempts = c.attempts - (NOT settled.begun)::int,
    last_error = nullif(settled.reason, '')
FROM (SELECT unnest(@ids::bigint[]) AS id, unnest(@sent::boolean[]) AS sent, unnest(@begun::boolean[]) AS begun,
    unnest(@pauses::float8[]) AS pause, unnest(@reasons::text[]) AS reason) AS settled
WHERE c.id = settled.id AND c.sent_at IS NULL;
