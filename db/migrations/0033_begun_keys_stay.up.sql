-- A key in progress is the only way back to what was begun at a provider: if its row is deleted by hand, nothing settles its payment,
-- and no metric counts it. Purging deletes finished keys alone, for which this trigger calls no function.
CREATE FUNCTION refuse_delete_of_begun() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a key in progress is never deleted' USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER begun_stays BEFORE DELETE ON idempotency_keys FOR EACH ROW
    WHEN (OLD.status = 'in_progress') EXECUTE FUNCTION refuse_delete_of_begun();
