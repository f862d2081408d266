DROP TRIGGER version_counted ON products;
DROP FUNCTION refuse_uncounted_version();
CREATE FUNCTION count_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.version := OLD.version + 1;
    RETURN NEW;
END $$;
CREATE TRIGGER version_counted BEFORE UPDATE ON products FOR EACH ROW EXECUTE FUNCTION count_version();
