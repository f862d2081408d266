DROP TRIGGER version_renewed ON accounts;
DROP TRIGGER version_renewed ON api_keys;
ALTER TABLE accounts DROP COLUMN suspended_at;
ALTER TABLE api_keys DROP COLUMN prefix, DROP COLUMN read_only, DROP COLUMN expires_at;
DROP FUNCTION renew_api_keys_version();
DROP TABLE api_keys_version;
