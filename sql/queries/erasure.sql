-- name: AccountOfCustomer :one
-- The statements of an erasure are made in this order. Each commits by itself, and may be repeated.
SELECT account_id FROM customers WHERE id = @id;

-- name: EraseCustomer :exec
-- Waits for changes of the customer that are under way, and for their orders: FOR UPDATE, because a new order locks the key of
-- the customer. After the commit nothing finds the customer, so no name and no address is written any more.
WITH locked AS (
    SELECT l.id FROM customers l WHERE l.account_id = @account_id AND l.id = @id FOR UPDATE
)
UPDATE customers c SET name = 'erased', email = @email, updated_at = now(), erased_at = now()
FROM locked WHERE c.account_id = @account_id AND c.id = locked.id AND c.erased_at IS NULL;

-- name: EraseAddresses :execrows
-- Waits for changes of the orders that are under way, and sees what they commit.
WITH locked AS MATERIALIZED (
    SELECT l.id, l.shipping_address FROM orders l
    WHERE l.account_id = @account_id AND l.customer_id = @customer_id ORDER BY l.id FOR UPDATE
)
UPDATE orders o SET shipping_address = NULL, updated_at = now()
FROM locked WHERE o.account_id = @account_id AND o.id = locked.id AND locked.shipping_address IS NOT NULL;

-- name: DropMails :execrows
UPDATE order_confirmations c SET due_at = NULL
FROM orders o WHERE o.account_id = @account_id AND o.customer_id = @customer_id
    AND c.account_id = o.account_id AND c.order_id = o.id AND c.due_at IS NOT NULL;

-- name: BuryAnswers :execrows
-- Answers that name the customer or an address become tombstones, which stay as long as the key is known.
UPDATE idempotency_keys k SET status = 'expired', response_headers = NULL, response_body = NULL, trace_parent = NULL,
    expires_at = coalesce(k.tombstone_until, k.expires_at), tombstone_until = NULL
WHERE k.account_id = @account_id AND k.resource = ANY (@resources::text[]) AND k.status IN ('completed', 'failed')
    AND (position('"email":'::bytea IN k.response_body) > 0 OR position('"shipping_address":'::bytea IN k.response_body) > 0);

-- name: KeysOfResources :many
-- Keys whose answers a store of records may have.
SELECT key FROM idempotency_keys WHERE account_id = @account_id AND resource = ANY (@resources::text[]);

-- name: OrdersOfCustomer :many
SELECT id FROM orders WHERE account_id = @account_id AND customer_id = @customer_id;

-- name: DeleteRecords :exec
DELETE FROM idempotency_records WHERE scope = @account AND key = ANY (@keys::text[]);

-- name: Timelines :many
SELECT system, number FROM timelines;
