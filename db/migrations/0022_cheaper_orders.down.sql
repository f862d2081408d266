ALTER TABLE orders REPLICA IDENTITY DEFAULT;
ALTER TABLE orders ADD PRIMARY KEY (id);
ALTER TABLE order_items ADD CONSTRAINT order_items_order_id_sku_key UNIQUE (order_id, sku);
ALTER TABLE order_items ADD CONSTRAINT order_items_account_id_order_id_fkey FOREIGN KEY (account_id, order_id) REFERENCES orders (account_id, id);
ALTER TABLE order_items ADD CONSTRAINT order_items_account_id_sku_fkey FOREIGN KEY (account_id, sku) REFERENCES products (account_id, sku);
ALTER TABLE ledger_transactions ADD CONSTRAINT ledger_transactions_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts (id);
ALTER TABLE idempotency_keys ADD CONSTRAINT idempotency_keys_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts (id);
