-- The statements count a product's version. Whoever changes a product without it is refused: its ETag would name two products.
-- A trigger before the update would lock the row once more. Replicas of the release before count, too. See docs/decisions/0022.
DROP TRIGGER version_counted ON products;
DROP FUNCTION count_version();
CREATE FUNCTION refuse_uncounted_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a change of a product must set version = version + 1' USING ERRCODE = 'check_violation', CONSTRAINT = 'version_counted', TABLE = 'products';
END $$;
CREATE TRIGGER version_counted AFTER UPDATE ON products FOR EACH ROW
    WHEN (NEW.version <> OLD.version + 1) EXECUTE FUNCTION refuse_uncounted_version();
