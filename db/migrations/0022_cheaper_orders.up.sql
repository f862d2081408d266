-- What each order paid for and nobody had anything of. See docs/decisions/0018.

-- The account of a row is that of the API key that was authenticated, and accounts are never deleted.
-- These locked the account's one row with every insert, in all transactions at once.
ALTER TABLE idempotency_keys DROP CONSTRAINT idempotency_keys_account_id_fkey;
ALTER TABLE ledger_transactions DROP CONSTRAINT ledger_transactions_account_id_fkey;

-- An item's SKU is that of a product that the transaction has read, and products are never deleted. This
-- locked a product that everybody wants before its stock was changed.
ALTER TABLE order_items DROP CONSTRAINT order_items_account_id_sku_fkey;

-- Items are only ever inserted behind their order, in one round trip.
ALTER TABLE order_items DROP CONSTRAINT order_items_account_id_order_id_fkey;

-- An item that is listed twice is refused before anything is read.
ALTER TABLE order_items DROP CONSTRAINT order_items_order_id_sku_key;

-- Every query names the account, and so do the foreign keys: UNIQUE (account_id, id) is the key.
ALTER TABLE orders DROP CONSTRAINT orders_pkey;
ALTER TABLE orders REPLICA IDENTITY USING INDEX orders_account_id_id_key;
