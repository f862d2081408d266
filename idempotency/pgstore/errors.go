package pgstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/oncepay/oncepay/idempotency"
)

// repeated takes a step, and takes it once more if its reply was lost: each step succeeds when
// the same owner takes it again. It does not repeat a step that the server answered, except for
// the codes in again, nor after the caller gave up.
func (s *Store) repeated(ctx context.Context, step func(context.Context) error) error {
	err := attempt(ctx, s.timeout, step)
	if err == nil || ctx.Err() != nil || isFinal(err) {
		return err
	}
	return attempt(ctx, s.timeout, step)
}

func attempt(ctx context.Context, timeout time.Duration, step func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return step(ctx)
}

// again are the answers after which the same statement may succeed
// (https://www.postgresql.org/docs/current/errcodes-appendix.html).
var again = map[string]bool{
	"40001": true, // serialization_failure, if the default isolation level was raised
	"40P01": true, // deadlock_detected
	"0A000": true, // feature_not_supported: the result of a prepared statement has changed with its table
	"26000": true, // invalid_sql_statement_name: a pool changed the session
	"42P05": true, // duplicate_prepared_statement, as well
	"57P01": true, // admin_shutdown, which closes connections
	"57P02": true, // crash_shutdown
}

// isFinal reports whether the server answered with this error. All others are network errors.
func isFinal(err error) bool {
	var answer *pgconn.PgError
	return errors.Is(err, idempotency.ErrLost) || errors.Is(err, idempotency.ErrCorrupt) ||
		errors.As(err, &answer) && !again[answer.Code]
}

// translate turns PostgreSQL's errors into the library's. Every error that is not about the record
// itself means that the database is unavailable: away, too slow, read-only, out of space, no
// such table.
func translate(err error) error {
	if errors.Is(err, idempotency.ErrLost) || errors.Is(err, idempotency.ErrCorrupt) {
		return err
	}
	return fmt.Errorf("%w: %w", idempotency.ErrUnavailable, err)
}
