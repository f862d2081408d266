-- A role may make a temporary table of any name, which PostgreSQL finds before the real one: with one of the name ledger_entries, the
-- check of the balance read nothing. The functions of the schema look in the schema first.
ALTER FUNCTION ledger_check_balance() SET search_path = pg_catalog, public, pg_temp;
ALTER FUNCTION renew_api_keys_version() SET search_path = pg_catalog, public, pg_temp;
ALTER FUNCTION refuse_delete() SET search_path = pg_catalog, public, pg_temp;
ALTER FUNCTION refuse_change() SET search_path = pg_catalog, public, pg_temp;
ALTER FUNCTION refuse_uncounted_version() SET search_path = pg_catalog, public, pg_temp;
ALTER FUNCTION refuse_delete_of_begun() SET search_path = pg_catalog, public, pg_temp;
