package tiers

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// keyQuery reads all as of one moment, with the names of the JSON. A group is done with an event
// that lies at or before its cursor, or is in its inbox.
const keyQuery = `WITH key AS (
	SELECT account_id AS account, operation, status, encode(fingerprint, 'hex') AS fingerprint, attempt,
		coalesce(resource, '/v1/payments/' || resource_id) AS resource, response_status, encode(sha256(response_body), 'hex') AS body_sha256, created_at, completed_at, expires_at
	FROM idempotency_keys WHERE key = $1 ORDER BY created_at DESC LIMIT 1
), payment AS (
	SELECT p.id, o.id AS order_id, o.status AS order_status, p.status, key.attempt, p.amount, p.currency, p.provider_id AS charge_id
	FROM key JOIN payments p ON p.account_id = key.account AND '/v1/payments/' || p.id = key.resource
		JOIN orders o ON o.account_id = p.account_id AND o.id = p.order_id
), event AS (
	SELECT e.id AS position, e.type, e.id <= (SELECT position FROM outbox_cursor) AS published,
		ARRAY(SELECT c.consumer FROM consumer_cursors c WHERE e.id <= c.position OR EXISTS (SELECT FROM inbox i
			WHERE i.consumer = c.consumer AND i.position = e.id AND i.event_id = e.event_id) ORDER BY 1) AS read_by
	FROM outbox e WHERE '/v1/orders/' || e.subject = (SELECT coalesce('/v1/orders/' || order_id, resource) FROM key LEFT JOIN payment ON true)
	ORDER BY e.id LIMIT 20
)
SELECT (SELECT to_json(key) FROM key), (SELECT to_json(payment) FROM payment), (SELECT coalesce(json_agg(event), '[]') FROM event),
	(SELECT json_build_object('last', coalesce((SELECT max(id) FROM outbox), 0), 'published', position) FROM outbox_cursor)`

// readPostgres fills in what the authority has.
func readPostgres(ctx context.Context, url string, view *View) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return conn.QueryRow(ctx, keyQuery, view.Key).Scan(&view.Authority, &view.Payment, &view.Events, &view.Stream)
}
