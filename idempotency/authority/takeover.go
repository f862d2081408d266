package authority

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// takeOver rolls back, takes the next attempt of what the key began, and reads the key in case
// there is nothing to resume. The round trip is a transaction of its own, committed at its end.
//
// Whether the process of the earlier attempt still runs is not asked. While it does, its lease
// keeps others away: in the store that all processes share, or by [WithLease].
func (tx *Tx) takeOver(ctx context.Context, claim Claim, resume Resume) (*Attempt, Result, error) {
	tx.rollback(ctx)
	tx.add(clockSQL) // for its limits
	if resume != nil {
		resume(ctx, tx)
	}
	taken := tx.add(tx.keys.sql.takeOver, claim.Scope, claim.Key, claim.Fingerprint[:], tx.keys.lease.Seconds())
	found := tx.add(tx.keys.sql.get, claim.Scope, claim.Key)
	tx.send(ctx)
	attempt, err := tx.resumed(taken)
	if errors.Is(err, pgx.ErrNoRows) {
		row, err := tx.readTaken(found)
		if err != nil {
			return nil, Result{}, err
		}
		result, err := row.replay(claim)
		return nil, result, err
	}
	if err := errors.Join(err, tx.finish()); err != nil {
		return nil, Result{}, fmt.Errorf("take over the operation: %w", unavailable(err))
	}
	tx.keys.takeovers.Add(1)
	return attempt, Result{}, nil
}

func (tx *Tx) resumed(taken *results) (*Attempt, error) {
	for _, read := range tx.reads {
		if err := read(); err != nil {
			return nil, err
		}
	}
	attempt := &Attempt{}
	return attempt, attempt.scan(taken.QueryRow())
}

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
