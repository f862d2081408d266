-- What a product's ETag names: it grows with every change, whoever makes it, and never returns. A trigger counts, so that replicas
-- of the release before count, too. updated_at would not do: two changes may have one time.
ALTER TABLE products ADD COLUMN version bigint NOT NULL DEFAULT 1;
CREATE FUNCTION count_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.version := OLD.version + 1;
    RETURN NEW;
END $$;
CREATE TRIGGER version_counted BEFORE UPDATE ON products FOR EACH ROW EXECUTE FUNCTION count_version();
