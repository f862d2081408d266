-- For forgetting what is old.
CREATE INDEX inbox_created ON inbox (created_at);
