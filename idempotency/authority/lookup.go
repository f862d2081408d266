package authority

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/idempotency"
)

// State is what a key is now.
type State string

// The states of a [Known] key.
const (
	StateInProgress State = "in_progress" // of an operation at a provider that is not settled
	StateCompleted  State = "completed"   // see [Done]
	StateFailed     State = "failed"      // see [Refused]
	StateExpired    State = "expired"     // its answer is no longer kept
)

// Known is what the authority knows of a key.
type Known struct {
	State       State
	Fingerprint idempotency.Fingerprint // of the request, as its claim says
	Operation   string                  // what the key was used for, as its claim says
	ID          string                  // of what was begun at a provider, in progress or not; may be empty
	Answer      Result                  // empty while in progress; without header and body once expired
	CreatedAt   time.Time
	CompletedAt time.Time // zero while in progress
	ExpiresAt   time.Time // until when this is known; what is in progress does not expire
	Held        bool      // see [Keys.Hold]
}

// Look returns what is known of a key, and changes nothing, or [ErrNotFound]: a key that was
// refused, and one whose time is up, is not known.
func (k *Keys) Look(ctx context.Context, scope, key string) (Known, error) {
	found, err := k.row(ctx, scope, key)
	if err != nil {
		return Known{}, fmt.Errorf("look up an idempotency key: %w", err)
	}
	return found.known()
}

func (k *Keys) row(ctx context.Context, scope, key string) (row, error) {
	found, err := query(ctx, k, true, func(from pgx.CollectableRow) (r row, err error) { return r, r.scan(from) }, k.sql.get, scope, key)
	if err == nil && len(found) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return row{}, err
	}
	return found[0], nil
}

func (r row) known() (known Known, err error) {
	state := State(r.state())
	known = Known{State: state, Operation: r.operation, ID: r.id, CreatedAt: r.created, ExpiresAt: r.expires, Held: r.held}
	copy(known.Fingerprint[:], r.fingerprint)
	switch state {
	case "", "refused":
		return Known{}, ErrNotFound
	case StateInProgress:
		return known, nil
	}
	known.CompletedAt = *r.completed
	if state != StateExpired {
		known.Answer, err = r.result()
		return known, err
	}
	known.Answer.Answer = Answer{Status: r.response, Resource: r.resource}
	if r.buried != nil { // not purged yet
		known.ExpiresAt = *r.buried
	}
	return known, nil
}

// Unsettled counts what is in progress at providers, by the database's clock.
type Unsettled struct {
	InProgress int
	Overdue    int           // of these, the ones that began longer ago than the deadline
	Held       int           // of these, the ones that wait for a person
	Oldest     time.Duration // since the oldest of these began; zero: there is none
}

// Unsettled counts what is in progress, and what of it is past the deadline.
func (k *Keys) Unsettled(ctx context.Context, deadline time.Duration) (Unsettled, error) {
	found, err := query(ctx, k, true, func(from pgx.CollectableRow) (u Unsettled, err error) {
		var oldest float64
		err = from.Scan(&u.InProgress, &u.Overdue, &u.Held, &oldest)
		u.Oldest = time.Duration(oldest * float64(time.Second))
		return u, err
	}, k.sql.count, deadline.Seconds())
	if err != nil {
		return Unsettled{}, fmt.Errorf("count what is in progress: %w", err)
	}
	return found[0], nil
}

const getSQL = `-- name: GetKey :one
SELECT fingerprint, operation, status, coalesce(resource_id::text, ''), coalesce(resource, ''),
	coalesce(response_status, 0), response_headers, response_body, coalesce(trace_parent, ''),
	coalesce(due_at = 'infinity', false), created_at, completed_at, expires_at, tombstone_until,
	extract(epoch FROM expires_at - now())::float8
FROM KEYS WHERE SCOPE = $1 AND key = $2`

const countSQL = `SELECT count(*), count(*) FILTER (WHERE created_at < now() - make_interval(secs => $1::float8)),
	count(*) FILTER (WHERE due_at = 'infinity'), coalesce(extract(epoch FROM now() - min(created_at)), 0)::float8
FROM KEYS WHERE status = 'in_progress' AND resource_id IS NOT NULL`
