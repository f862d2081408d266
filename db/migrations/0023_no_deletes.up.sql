-- What migration 0022 leaves to refuse: an order or product that is deleted by hand while an order is placed or cancelled would
-- lose units without an error. A trigger per statement costs orders nothing.
CREATE FUNCTION refuse_delete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% are never deleted', tg_table_name USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER never_deleted BEFORE DELETE ON products EXECUTE FUNCTION refuse_delete();
CREATE TRIGGER never_deleted BEFORE DELETE ON orders EXECUTE FUNCTION refuse_delete();
