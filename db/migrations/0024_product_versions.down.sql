DROP TRIGGER version_counted ON products;
DROP FUNCTION count_version();
ALTER TABLE products DROP COLUMN version;
