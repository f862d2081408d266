-- Replicas know all API keys that may be used. This tells them when to read the keys again: it is another one after each change of
-- a key or an account, whoever makes it, and an earlier one again if such a change is lost in a failover.
CREATE TABLE api_keys_version (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    version  uuid NOT NULL DEFAULT gen_random_uuid()
);
INSERT INTO api_keys_version DEFAULT VALUES;
CREATE FUNCTION renew_api_keys_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE api_keys_version SET version = gen_random_uuid();
    RETURN NULL;
END $$;

-- What a key may do, and for how long. A suspended account may do nothing, and gets no answers of before.
ALTER TABLE api_keys
    ADD COLUMN prefix text, -- of the key itself, for people; not known of keys from before
    ADD COLUMN read_only boolean NOT NULL DEFAULT false,
    ADD COLUMN expires_at timestamptz;
ALTER TABLE accounts ADD COLUMN suspended_at timestamptz;

CREATE TRIGGER version_renewed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON api_keys EXECUTE FUNCTION renew_api_keys_version();
CREATE TRIGGER version_renewed AFTER UPDATE ON accounts EXECUTE FUNCTION renew_api_keys_version();
