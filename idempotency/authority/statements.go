package authority

import (
	"fmt"
	"regexp"
	"strings"
)

// The default names; [WithTable] replaces them.
const (
	DefaultTable = "idempotency_keys"
	DefaultScope = "scope"
)

// plainName matches names that need no quotes, and leave room for the suffixes of indexes and
// constraints within PostgreSQL's 63 characters.
var plainName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,39}$`)

func isPlain(name string) bool { return plainName.MatchString(name) }

// statements are those of one table.
type statements struct {
	probe, fence, claim, finish, get, takeOver  string
	due, held, putOff, hold, find, purge, count string
}

// newStatements fills the templates. In them, KEYS is the table and SCOPE its column of scopes. The
// first line of a statement names it, for those who read traces.
func newStatements(table, scope string) statements {
	names := strings.NewReplacer("KEYS", table, "SCOPE", scope)
	return statements{
		probe: names.Replace(probeSQL), fence: names.Replace(fenceSQL), claim: names.Replace(claimSQL),
		finish: names.Replace(finishSQL), get: names.Replace(getSQL), takeOver: names.Replace(takeOverSQL),
		due: names.Replace(dueSQL), held: names.Replace(heldSQL), putOff: names.Replace(putOffSQL),
		hold: names.Replace(holdSQL), find: names.Replace(findSQL), purge: names.Replace(purgeSQL), count: names.Replace(countSQL),
	}
}

// Each statement sees what was committed before it, so a row that is read after a lock was waited
// for is up to date. Locks and constraints do the rest.
const beginSQL = "begin isolation level read committed read write"

// A transaction opens with one of these, which return the database's clock and whether the
// transaction may go on. They save work and decide nothing: the claim and the settlement do.
const (
	clockSQL = `SELECT now(), true`
	// probeSQL does not look for a refusal of a newer attempt.
	probeSQL = `-- name: ProbeKey :one
SELECT now(), NOT EXISTS (SELECT FROM KEYS k WHERE SCOPE = $1 AND key = $2 AND status <> 'refused'
	AND (status = 'in_progress' OR greatest(expires_at, tombstone_until) > now()))`
	fenceSQL = `-- name: ProbeAttempt :one
SELECT now(), EXISTS (SELECT FROM KEYS WHERE SCOPE = $1 AND key = $2 AND ` + mayFinish + `)`
)

// mayFinish is the fence: whether the attempt $3 may settle; 0: any attempt may.
const mayFinish = `status = 'in_progress' AND $3::integer IN (0, attempt)`

// claimSQL claims the key and keeps its answer, in one row version. It waits for a transaction that
// writes the same key. If the key is taken, status becomes NULL, which its column refuses, and
// nothing of the transaction is committed. A key whose time is up is claimed as if it had been
// purged. A refused key is claimed by a later attempt alone, and no key by an attempt that is older
// than refusals are kept: the comparison is made here because a replica may be paused between a
// comparison of its own and this statement. Nor is a key claimed by an attempt that is as far
// ahead: either its refusal would be kept too short, or it is this clock that is wrong.
var claimSQL = fmt.Sprintf(`-- name: ClaimKey :exec
INSERT INTO KEYS AS k (SCOPE, key, fingerprint, operation, status, resource_id, resource,
	response_status, response_headers, response_body, completed_at, attempted_at, expires_at, tombstone_until, trace_parent)
VALUES ($1, $2, $3, $4, CASE WHEN abs(extract(epoch FROM now() - $11::timestamptz)) < %d THEN $5::text END,
	$6, nullif($7::text, ''), $8, $9, $10, CASE WHEN $5::text IN ('completed', 'failed') THEN now() END,
	$11, now() + make_interval(secs => $12::float8), now() + make_interval(secs => nullif($13::float8, 0)), nullif($14::text, ''))
ON CONFLICT (SCOPE, key) DO UPDATE SET fingerprint = excluded.fingerprint, operation = excluded.operation,
	status = CASE WHEN CASE k.status WHEN 'in_progress' THEN false
		WHEN 'refused' THEN k.attempted_at < excluded.attempted_at
		ELSE greatest(k.expires_at, k.tombstone_until) <= now() END THEN excluded.status END,
	resource_id = excluded.resource_id, resource = excluded.resource, response_status = excluded.response_status,
	response_headers = excluded.response_headers, response_body = excluded.response_body, created_at = now(),
	completed_at = excluded.completed_at, attempted_at = excluded.attempted_at, expires_at = excluded.expires_at,
	tombstone_until = excluded.tombstone_until, trace_parent = excluded.trace_parent,
	attempt = 1, taken_at = now(), due_at = NULL`, int(MaxRequestAge.Seconds()))

// finishSQL keeps the answer of what was begun. If the fence is lost, status becomes NULL as in
// claimSQL. The times count from now on, because settling may have taken days.
const finishSQL = `-- name: FinishKey :exec
UPDATE KEYS SET status = CASE WHEN ` + mayFinish + ` THEN $4::text END,
	resource = nullif($5::text, ''), response_status = $6, response_headers = $7, response_body = $8, completed_at = now(),
	expires_at = now() + (expires_at - created_at), tombstone_until = now() + (tombstone_until - created_at), due_at = NULL
WHERE SCOPE = $1 AND key = $2`

const getSQL = `-- name: GetKey :one
SELECT fingerprint, operation, status, coalesce(resource_id::text, ''), coalesce(resource, ''),
	coalesce(response_status, 0), response_headers, response_body, coalesce(trace_parent, ''),
	coalesce(due_at = 'infinity', false), created_at, completed_at, expires_at, tombstone_until,
	extract(epoch FROM expires_at - now())::float8
FROM KEYS WHERE SCOPE = $1 AND key = $2`

// attempt is what of a row in progress makes an attempt.
const attempt = `SCOPE::text, key, fingerprint, operation, resource_id::text, attempt, created_at, taken_at`

// takeOverSQL takes the next attempt of what a key in progress began, and with it raises the
// fence for all earlier ones. What is held is not taken, nor is what an attempt works on within
// its lease.
// Without a lease no times are compared: who waited for the row began before it was taken.
const takeOverSQL = `-- name: TakeOverKey :one
UPDATE KEYS SET attempt = attempt + 1, taken_at = now(), due_at = NULL
WHERE SCOPE = $1 AND key = $2 AND fingerprint = $3 AND status = 'in_progress' AND resource_id IS NOT NULL
	AND due_at IS DISTINCT FROM 'infinity'
	AND ($4::float8 = 0 OR due_at IS NOT NULL OR taken_at <= now() - make_interval(secs => $4::float8))
RETURNING ` + attempt

// dueSQL takes the next attempt of what no attempt works on. An older attempt that is still running
// can then no longer settle.
const dueSQL = `-- name: TakeDueKeys :many
WITH due AS MATERIALIZED (
	SELECT SCOPE, key FROM KEYS WHERE status = 'in_progress' AND resource_id IS NOT NULL
		AND coalesce(due_at, taken_at + make_interval(secs => $1::float8)) <= now()
	ORDER BY coalesce(due_at, taken_at) LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE KEYS SET attempt = attempt + 1, taken_at = now(), due_at = NULL
FROM due WHERE KEYS.SCOPE = due.SCOPE AND KEYS.key = due.key
RETURNING KEYS.SCOPE::text, KEYS.key, fingerprint, operation, resource_id::text, attempt, created_at, taken_at`

// mine is a row that only its newest attempt may put off or hold.
const mine = `SCOPE = $1 AND key = $2 AND status = 'in_progress' AND attempt = $3`

const (
	putOffSQL = `UPDATE KEYS SET due_at = now() + make_interval(secs => $4::float8) WHERE ` + mine
	holdSQL   = `UPDATE KEYS SET due_at = 'infinity' WHERE ` + mine
	heldSQL   = `SELECT ` + attempt + ` FROM KEYS WHERE status = 'in_progress' AND resource_id IS NOT NULL
	AND due_at = 'infinity' ORDER BY taken_at LIMIT $1`
	findSQL = `SELECT ` + attempt + ` FROM KEYS WHERE status = 'in_progress' AND resource_id = $1`
)

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

const countSQL = `SELECT count(*), count(*) FILTER (WHERE created_at < now() - make_interval(secs => $1::float8)),
	count(*) FILTER (WHERE due_at = 'infinity'), coalesce(extract(epoch FROM now() - min(created_at)), 0)::float8
FROM KEYS WHERE status = 'in_progress' AND resource_id IS NOT NULL`
