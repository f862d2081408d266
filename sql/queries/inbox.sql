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
