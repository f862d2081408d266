-- What the service's role may do: "oncepay migrate up" applies this to DATABASE_SERVICE_ROLE. A table without a line is out of
-- its reach. Whoever locks a row needs UPDATE (PostgreSQL manual, "SELECT").
REVOKE ALL ON ALL TABLES IN SCHEMA public FROM service_role;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA public FROM service_role;
REVOKE ALL ON SCHEMA public FROM service_role;
GRANT USAGE ON SCHEMA public TO service_role;
-- Every role may make temporary tables, and tables in a schema that an old release of PostgreSQL made. Only their owners can
-- change that: another role gets a warning.
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
DO $$ BEGIN EXECUTE format('REVOKE TEMPORARY ON DATABASE %I FROM PUBLIC', current_database()); END $$;
GRANT SELECT ON schema_migrations TO service_role;

-- Who may use the API is for people to say: oncepay account and oncepay apikey, as the role that migrates.
GRANT SELECT ON accounts, api_keys, api_keys_version TO service_role;

-- Append-only. The check of the balance reads the entries.
GRANT SELECT, INSERT ON ledger_transactions, ledger_entries TO service_role;

-- The shop.
GRANT SELECT, INSERT ON order_items, top_ups TO service_role;
GRANT SELECT, INSERT, UPDATE ON customers, wallets, products, orders, payments, refunds TO service_role;

-- Keys, and what the provider sent.
GRANT SELECT, INSERT, UPDATE, DELETE ON idempotency_keys, idempotency_records, provider_events TO service_role;

-- Events and their effects.
GRANT SELECT, INSERT, UPDATE, DELETE ON outbox, inbox, dead_letters TO service_role;
GRANT SELECT, UPDATE ON SEQUENCE outbox_id_seq TO service_role; -- moved on after a failover
GRANT SELECT, INSERT, UPDATE ON timelines, outbox_cursor, consumer_cursors TO service_role;
GRANT SELECT, INSERT, UPDATE ON order_confirmations TO service_role;
GRANT SELECT, INSERT ON warehouse_notices TO service_role;
