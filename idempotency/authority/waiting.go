package authority

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// PutOff makes an attempt's operation due after the wait, unless it is settled or a newer attempt
// was taken: the attempt did not learn the outcome, and works on it no more.
func (k *Keys) PutOff(ctx context.Context, a Attempt, wait time.Duration) error {
	return k.set(ctx, "put off an operation", a, k.sql.putOff, wait.Seconds())
}

// Hold makes an attempt's operation wait for a person, or for a program that asks one: no attempt
// goes on with it, and requests with its key get [InProgress]. [Keys.SettleAny] ends that.
func (k *Keys) Hold(ctx context.Context, a Attempt) error {
	return k.set(ctx, "hold an operation", a, k.sql.hold)
}

func (k *Keys) set(ctx context.Context, doing string, a Attempt, sql string, args ...any) error {
	if err := a.check(); err != nil {
		return err
	}
	args = append([]any{a.Scope, a.Key, a.ID, a.Number}, args...)
	if _, err := query(ctx, k, true, pgx.RowTo[bool], sql, args...); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}

// Held returns at most limit operations that are held, oldest first.
func (k *Keys) Held(ctx context.Context, limit int) ([]Attempt, error) {
	return k.attempts(ctx, "read held operations", true, k.sql.held, limit)
}

// Due takes the next attempt of at most limit operations that no attempt works on: the time to
// which they were put off has come, or no attempt was taken for as long as the grace, which is
// longer than a handler takes. It skips those that others are taking.
func (k *Keys) Due(ctx context.Context, grace time.Duration, limit int) ([]Attempt, error) {
	due, err := k.attempts(ctx, "take due operations", false, k.sql.due, grace.Seconds(), limit)
	k.takeovers.Add(int64(len(due)))
	return due, err
}

// Find returns what is in progress with this ID, for [Keys.SettleAny], or [ErrNotFound]: it is
// settled already, or was never begun. Your own row of it knows which.
func (k *Keys) Find(ctx context.Context, id string) (Attempt, error) {
	found, err := k.attempts(ctx, "find an operation", true, k.sql.find, id)
	if err == nil && len(found) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Attempt{}, err
	}
	return found[0], nil
}

func (k *Keys) attempts(ctx context.Context, doing string, again bool, sql string, args ...any) ([]Attempt, error) {
	found, err := query(ctx, k, again, func(from pgx.CollectableRow) (a Attempt, err error) { return a, a.scan(from) }, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return found, nil
}

// attempt is what of a row in progress makes an attempt.
const attempt = `SCOPE::text, key, fingerprint, operation, resource_id::text, attempt, created_at, taken_at`

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
const mine = `SCOPE = $1 AND key = $2 AND status = 'in_progress' AND resource_id = $3 AND attempt = $4`

const (
	putOffSQL = `UPDATE KEYS SET due_at = now() + make_interval(secs => $5::float8) WHERE ` + mine
	holdSQL   = `UPDATE KEYS SET due_at = 'infinity' WHERE ` + mine
	heldSQL   = `SELECT ` + attempt + ` FROM KEYS WHERE status = 'in_progress' AND resource_id IS NOT NULL
	AND due_at = 'infinity' ORDER BY taken_at LIMIT $1`
	findSQL = `SELECT ` + attempt + ` FROM KEYS WHERE status = 'in_progress' AND resource_id = $1`
)
