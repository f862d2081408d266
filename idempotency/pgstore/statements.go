package pgstore

import (
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/idempotency/internal/headers"
)

// statements contain the name of the store's table. All of them use clock_timestamp(): now() is
// when the transaction began, and a statement may have waited for a lock since then.
type statements struct{ acquire, extend, complete, release, notify, look, sweep string }

// acquireSQL reads first, because a replay or conflict must not write. If it saw no live record
// it inserts one, or takes an expired one over. It returns no row if another record was written
// between the read and the insert.
const acquireSQL = `
WITH existing AS (
	SELECT owner, status, fingerprint, created_at, expires_at - clock_timestamp() AS remaining,
		response_status, response_headers, response_body, body_omitted, trace_parent
	FROM idempotency_records WHERE scope = $1 AND key = $2 AND expires_at > clock_timestamp()
), claimed AS (
	INSERT INTO idempotency_records AS record (scope, key, status, fingerprint, owner, created_at, expires_at, trace_parent)
	SELECT $1, $2, 'InProgress', $3, $4, $5, clock_timestamp() + $6::interval, NULLIF($7, '') WHERE NOT EXISTS (SELECT FROM existing)
	ON CONFLICT (scope, key) DO UPDATE SET status = excluded.status, fingerprint = excluded.fingerprint, owner = excluded.owner,
		created_at = excluded.created_at, expires_at = clock_timestamp() + $6::interval, trace_parent = excluded.trace_parent,
		response_status = NULL, response_headers = NULL, response_body = NULL, body_omitted = false
	WHERE record.expires_at <= clock_timestamp()
	RETURNING owner, status, fingerprint, created_at, expires_at - clock_timestamp(),
		response_status, response_headers, response_body, body_omitted, trace_parent
)
SELECT * FROM claimed UNION ALL SELECT * FROM existing`

// held is the record that the owner $3 holds under a lease.
const held = `scope = $1 AND key = $2 AND owner = $3 AND status = 'InProgress' AND expires_at > clock_timestamp()`

const extendSQL = `
UPDATE idempotency_records SET expires_at = clock_timestamp() + $4::interval WHERE ` + held

const completeSQL = `
UPDATE idempotency_records SET expires_at = clock_timestamp() + $4::interval, status = $5,
	response_status = $6, response_headers = $7, response_body = $8, body_omitted = $9, trace_parent = NULLIF($10, '')
WHERE ` + held

// releaseSQL does not check the lease: an expired record may be deleted, too.
const releaseSQL = `
DELETE FROM idempotency_records WHERE scope = $1 AND key = $2 AND owner = $3 AND status = 'InProgress'`

// notifySQL is a transaction of its own: while its queue is full, PostgreSQL fails one that
// notifies.
const notifySQL = `
SELECT pg_notify('idempotency_records', name) FROM unnest($1::text[]) AS name`

// lookSQL returns whether the live record was finished by the owner $3.
const lookSQL = `
SELECT owner = $3 AND status <> 'InProgress' FROM idempotency_records
WHERE scope = $1 AND key = $2 AND expires_at > clock_timestamp()`

// sweepSQL skips records that are being taken over.
const sweepSQL = `
WITH expired AS MATERIALIZED (
	SELECT scope, key FROM idempotency_records WHERE expires_at <= clock_timestamp()
	ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
)
DELETE FROM idempotency_records record USING expired WHERE record.scope = expired.scope AND record.key = expired.key`

func (s *Store) statements() statements {
	return statements{
		acquire: s.named(acquireSQL), extend: s.named(extendSQL), complete: s.named(completeSQL),
		release: s.named(releaseSQL), notify: s.named(notifySQL),
		look: s.named(lookSQL), sweep: s.named(sweepSQL),
	}
}

// scanRecord reads a row of acquireSQL or lookupSQL. ExpiresAt is on this process's clock, computed
// from the time that remains on the database's.
func scanRecord(row pgx.CollectableRow) (idempotency.Record, error) {
	var (
		r           idempotency.Record
		fingerprint []byte
		header      []byte
		code        *int
		parent      *string
		remaining   time.Duration
	)
	err := row.Scan(&r.Owner, &r.Status, &fingerprint, &r.CreatedAt, &remaining, &code, &header, &r.Response.Body, &r.Response.BodyOmitted,
		&parent)
	if err != nil {
		return r, err
	}
	r.ExpiresAt = time.Now().Add(remaining)
	copy(r.Fingerprint[:], fingerprint)
	if parent != nil {
		r.TraceParent = *parent
	}
	if code == nil {
		return r, nil
	}
	r.Response.StatusCode = *code
	if r.Response.Header, err = headers.Unmarshal(header); err != nil {
		return r, fmt.Errorf("%w: %w", idempotency.ErrCorrupt, err)
	}
	return r, nil
}

// encode returns a response's headers and body for the table: neither is NULL once a record
// is finished.
func encode(response idempotency.Response) (header string, body []byte) {
	return string(headers.Marshal(response.Header)), append([]byte{}, response.Body...)
}
