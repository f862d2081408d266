-- For counting the payments of the last hour. They are written in this order, so a summary of each stretch of the table will do.
CREATE INDEX payments_created ON payments USING brin (created_at) WITH (autosummarize = on);
