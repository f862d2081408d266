package authority

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Purge deletes at most limit keys whose time is up, or makes tombstones of them, and returns how
// many. Several processes may purge at once. Purge again at once while it returns limit.
func (k *Keys) Purge(ctx context.Context, limit int) (int, error) {
	purged, err := query(ctx, k, false, pgx.RowTo[int], k.sql.purge, time.Now(), limit)
	if err != nil {
		return 0, fmt.Errorf("purge idempotency keys: %w", err)
	}
	return purged[0], nil
}

// purgeSQL deletes keys whose time is up, and makes tombstones of those that have one. A key in
// progress stays, however old it is: it is the only way back to what was begun. The time is up when
// both the database's clock and the caller's say so: what a wrong clock deletes is gone when the
// clock is right again.
const purgeSQL = `-- name: PurgeKeys :one
WITH clock AS (
	SELECT least(now(), $1::timestamptz) AS now
), due AS (
	SELECT SCOPE, key, tombstone_until FROM KEYS
	WHERE status <> 'in_progress' AND expires_at <= (SELECT clock.now FROM clock)
	ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED
), buried AS (
	UPDATE KEYS k SET status = 'expired', response_headers = NULL, response_body = NULL, trace_parent = NULL,
		expires_at = due.tombstone_until, tombstone_until = NULL
	FROM due, clock WHERE k.SCOPE = due.SCOPE AND k.key = due.key AND due.tombstone_until > clock.now
), deleted AS (
	DELETE FROM KEYS k USING due, clock
	WHERE k.SCOPE = due.SCOPE AND k.key = due.key AND coalesce(due.tombstone_until <= clock.now, true)
)
SELECT count(*) FROM due`
