package authority

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// row is a key's row, and how much longer it holds, by the database's clock.
type row struct {
	fingerprint       []byte
	operation, status string
	id, resource      string
	response          int
	header, body      []byte
	traceParent       string
	held              bool
	created, expires  time.Time
	completed, buried *time.Time // buried: until when the tombstone stays
	left              time.Duration
}

func (r *row) scan(from pgx.Row) error {
	var left float64
	err := from.Scan(&r.fingerprint, &r.operation, &r.status, &r.id, &r.resource, &r.response, &r.header, &r.body, &r.traceParent,
		&r.held, &r.created, &r.completed, &r.expires, &r.buried, &left)
	r.left = time.Duration(left * float64(time.Second))
	return err
}

// state is the state of the key now, or "" if it counts as purged. Purging comes later than the
// time that was promised, and must make no difference.
func (r row) state() string {
	switch {
	case r.status == "in_progress" || r.status == "refused" || r.left > 0:
		return r.status
	case r.buried != nil && r.left+r.buried.Sub(r.expires) > 0:
		return "expired"
	}
	return ""
}

// taken is the row of a taken key. It rolls back and reads in one round trip, in a new statement,
// which sees what the other transaction committed.
func (tx *Tx) taken(ctx context.Context, scope, key string) (row, error) {
	tx.rollback(ctx)
	found := tx.add(tx.keys.sql.get, scope, key)
	tx.send(ctx)
	return tx.readTaken(found)
}

func (tx *Tx) readTaken(found *results) (r row, err error) {
	err = r.scan(found.QueryRow())
	if errors.Is(err, pgx.ErrNoRows) {
		return r, fmt.Errorf("claim the idempotency key: %w", errUnclaimable)
	}
	if err := errors.Join(err, tx.finish()); err != nil {
		return r, fmt.Errorf("read the idempotency key: %w", unavailable(err))
	}
	return r, nil
}

// replay returns the answer that a taken key was finished with. A key in progress is not decided,
// not even for another request: [Reused] is final.
func (r row) replay(claim Claim) (Result, error) {
	switch state := r.state(); {
	case state == "refused":
		return Result{}, &Taken{Why: Older}
	case state == "in_progress":
		return Result{}, &Taken{Why: InProgress, Since: r.created, Held: r.held}
	case state == "": // its time was up between the claim and this look
		return Result{}, &Taken{Why: InProgress}
	case !bytes.Equal(r.fingerprint, claim.Fingerprint[:]):
		return Result{}, &Taken{Why: Reused}
	case state == "expired":
		return Result{}, &Taken{Why: Expired, Resource: r.resource}
	}
	return r.result()
}

// replayFor is replay for an attempt that cannot settle. It has asked the provider, so that it gets
// the answer of its own request alone, and no refusal that says that nothing was done.
func (r row) replayFor(a Attempt) (Result, error) {
	if state := r.state(); state == "" || state == "refused" || !bytes.Equal(r.fingerprint, a.Fingerprint[:]) {
		return Result{}, fmt.Errorf("%w: %s: its idempotency key was used again", ErrUnknown, a.ID)
	}
	return r.replay(Claim{Fingerprint: a.Fingerprint})
}

// result is the answer that a finished key has kept.
func (r row) result() (Result, error) {
	answer := Answer{Status: r.response, Body: r.body, Resource: r.resource}
	if err := json.Unmarshal(r.header, &answer.Header); err != nil {
		return Result{}, fmt.Errorf("%w: decode the kept answer's header: %w", errMistake, err)
	}
	return Result{Answer: answer, Replayed: true, KeptFor: r.left, TraceParent: r.traceParent}, nil
}
