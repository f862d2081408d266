-- The rows of these Redis records, as JSON. Those of another timeline of PostgreSQL's are not believed. A tombstone is no
-- longer an answer: its time is up.
SELECT json_agg(r) FROM (
	SELECT name AS "Name", status IS NOT NULL AS "HasRow",
		CASE WHEN status IN ('completed', 'failed') THEN expires_at ELSE 'epoch' END AS "RowExpires"
	FROM (SELECT 'idempotency:' || lpad(to_hex(system & x'ffffffff'::bigint), 8, '0') || '.' || number || ':' AS prefix
		FROM timelines ORDER BY begun_at DESC LIMIT 1) timeline
	JOIN unnest($1::text[]) name ON starts_with(name, prefix)
	LEFT JOIN idempotency_keys ON account_id || ':' || key = substr(name, length(prefix) + 1) -- each side is of one table: it is hashed
		AND status NOT IN ('in_progress', 'refused')) r
