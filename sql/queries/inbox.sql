-- name: ConfirmOrder :execrows
WITH new AS (
    INSERT INTO inbox (consumer, event_id) VALUES (@consumer, @event_id) ON CONFLICT DO NOTHING RETURNING event_id
)
INSERT INTO order_confirmations (account_id, order_id) SELECT @account_id::uuid, @order_id::uuid FROM new;

-- name: NoticeWarehouse :execrows
WITH new AS (
    INSERT INTO inbox (consumer, event_id) VALUES (@consumer, @event_id) ON CONFLICT DO NOTHING RETURNING event_id
)
INSERT INTO warehouse_notices (account_id, order_id) SELECT @account_id::uuid, @order_id::uuid FROM new;

-- name: PurgeInbox :execrows
-- Whatever the outbox still holds may be published again, however old it is.
WITH old AS (
    SELECT i.consumer, i.event_id FROM inbox i
    WHERE i.created_at < now() - make_interval(secs => @age_seconds::float8)
      AND NOT EXISTS (SELECT FROM outbox o WHERE o.event_id = i.event_id)
    ORDER BY i.created_at LIMIT @batch_size FOR UPDATE OF i SKIP LOCKED
)
DELETE FROM inbox USING old WHERE inbox.consumer = old.consumer AND inbox.event_id = old.event_id;
