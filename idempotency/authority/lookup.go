package authority

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
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
	Operation   string // what the key was used for, as its claim says
	ID          string // of what was begun at a provider, in progress or not; may be empty
	Answer      Result // empty while in progress; without header and body once expired
	CreatedAt   time.Time
	CompletedAt time.Time // zero while in progress
	ExpiresAt   time.Time // until when this is known; what is in progress does not expire
	Held        bool      // see [Keys.Hold]
}

// Look returns what is known of a key, and changes nothing, or [ErrNotFound]: a key that was
// refused, and one whose time is up, is not known.
func (k *Keys) Look(ctx context.Context, scope, key string) (Known, error) {
	found, err := query(ctx, k, true, func(from pgx.CollectableRow) (r row, err error) { return r, r.scan(from) }, k.sql.get, scope, key)
	if err == nil && len(found) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Known{}, fmt.Errorf("look up an idempotency key: %w", err)
	}
	return found[0].known()
}

func (r row) known() (known Known, err error) {
	state := State(r.state())
	known = Known{State: state, Operation: r.operation, ID: r.id, CreatedAt: r.created, ExpiresAt: r.expires, Held: r.held}
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

// Purge deletes at most limit keys whose time is up, or makes tombstones of them, and returns how
// many. Several processes may purge at once. Purge again at once while it returns limit.
func (k *Keys) Purge(ctx context.Context, limit int) (int, error) {
	purged, err := query(ctx, k, false, pgx.RowTo[int], k.sql.purge, time.Now(), limit)
	if err != nil {
		return 0, fmt.Errorf("purge idempotency keys: %w", err)
	}
	return purged[0], nil
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
