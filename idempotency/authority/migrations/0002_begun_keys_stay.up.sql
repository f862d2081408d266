-- A key in progress is the only way back to what was begun at a provider. Purging deletes finished keys alone, for
-- which this trigger calls no function.
CREATE OR REPLACE FUNCTION idempotency_keys_begun_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a key in progress is never deleted' USING ERRCODE = 'restrict_violation';
END $$;
DO $$
BEGIN -- CREATE OR REPLACE TRIGGER would wait for all writers, at every start of a service
    IF NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = 'idempotency_keys'::regclass AND tgname = 'begun_stays') THEN
        CREATE TRIGGER begun_stays BEFORE DELETE ON idempotency_keys FOR EACH ROW
            WHEN (OLD.status = 'in_progress') EXECUTE FUNCTION idempotency_keys_begun_stays();
    END IF;
END $$;
