package authority

import (
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/oncepay/oncepay/idempotency"
)

var (
	// ErrUnknown says that the provider did not say what it did. It is no failure: a retry, the
	// worker or the provider's own event finds out.
	ErrUnknown = errors.New("authority: the outcome at the provider is unknown")

	// ErrNotFound says that nothing is known of a key, or that no key in progress has begun what
	// was asked for.
	ErrNotFound = errors.New("authority: nothing is known of this")

	// ErrOvertaken ends a settlement, when the function that settles returns it: another attempt
	// has settled, or is going to. The caller gets the kept answer, or [Taken].
	ErrOvertaken = errors.New("authority: another attempt has settled, or is going to")

	// ErrAbandoned says that a request without a key was not executed, because its client is gone:
	// a proxy may have passed the request on, and the client may have its answer.
	ErrAbandoned = fmt.Errorf("%w: the client has closed the connection", idempotency.ErrUnavailable)

	// ErrNoKey is a mistake of the caller: what is begun can be resumed by its key alone.
	ErrNoKey = fmt.Errorf("%w: an operation at a provider needs an idempotency key", errMistake)

	// errTaken stops a transaction: the key is taken, or the fence is lost.
	errTaken = errors.New("authority: the idempotency key is taken")

	// errUnclaimable is why a key can neither be claimed nor read.
	errUnclaimable = fmt.Errorf("%w: the key's row is gone again, or the attempt's time is half an hour from the database's clock",
		idempotency.ErrUnavailable)

	// errNoMiddleware refuses a request whose key would be ignored.
	errNoMiddleware = fmt.Errorf("%w: the request has an idempotency key, and came through no idempotency.Middleware", errMistake)

	errNoAsk     = fmt.Errorf("%w: Provider.Ask is nil", errMistake)
	errNoSettle  = fmt.Errorf("%w: a provider's function returned neither how to settle nor an error", errMistake)
	errNoOutcome = fmt.Errorf("%w: a request must end with an outcome", errMistake)
	errNoID      = fmt.Errorf("%w: Begun and Attempt need the ID of what was begun", errMistake)
	errBegun     = fmt.Errorf("%w: Begun is for Begin, Operate and ServeProvider: nothing else settles it", errMistake)
	errNotBegun  = fmt.Errorf("%w: what was begun at a provider ends with Done or Refused", errMistake)

	// errMistake is an error of a program, or of what it has stored, and not of the database.
	errMistake = errors.New("authority")
)

// Why says why a taken key leads to no answer.
type Why string

// The reasons of a [Taken].
const (
	InProgress Why = "in progress" // a request with the key is running, or its outcome is unknown
	Reused     Why = "reused"      // another request's answer is kept under the key: final
	Expired    Why = "expired"     // this request was executed, and its answer is no longer kept
	Older      Why = "older"       // a newer attempt with the key was refused; nothing was done
)

// Taken is the error of a request whose key is taken, if there is no answer to replay. Nothing was
// done.
type Taken struct {
	Why      Why
	Since    time.Time // InProgress: since when, by the database's clock
	Held     bool      // InProgress: no attempt goes on with it, see [Keys.Hold]
	Resource string    // Expired: the path of what the key led to; may be empty
}

// Error implements error.
func (t *Taken) Error() string { return "authority: the idempotency key is taken: " + string(t.Why) }

// translate recognizes what a statement of this table says by an error.
func (k *Keys) translate(err error) error {
	var server *pgconn.PgError
	if errors.As(err, &server) && server.Code == "23502" && server.TableName == k.table && server.ColumnName == "status" {
		return errTaken // not_null_violation, as claimSQL and finishSQL say it
	}
	return unavailable(err)
}

// unavailable wraps errors of the database in [idempotency.ErrUnavailable] if a retry may help.
func unavailable(err error) error {
	if err == nil || !IsUnavailable(err) || errors.Is(err, idempotency.ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %w", idempotency.ErrUnavailable, err)
}

// IsUnavailable reports whether an error of pgx is about the database's state: it is away, too
// slow, read-only, out of space, ended the transaction, or forgot a prepared statement. A retry may
// help then. All other errors of the server are about the statement (PostgreSQL manual, appendix
// A).
func IsUnavailable(err error) bool {
	var server *pgconn.PgError
	if !errors.As(err, &server) {
		return !errors.Is(err, errMistake) // the connection was lost, refused or too slow
	}
	switch server.Code {
	case "55P03", // lock_not_available
		"0A000",          // feature_not_supported: the result of a prepared statement has changed with its table
		"26000", "42P05", // invalid_sql_statement_name, duplicate_prepared_statement: a pool changed the session
		"25006",          // read_only_sql_transaction: this is a standby
		"25P02",          // in_failed_sql_transaction: an error before this one was not returned
		"25P03", "25P04": // idle_in_transaction_session_timeout, transaction_timeout
		return true
	}
	switch server.Code[:min(2, len(server.Code))] {
	case "08", // connection exception
		"40",       // transaction rollback: serialization failure, deadlock
		"53",       // insufficient resources: disk full, too many connections
		"57", "58": // operator intervention: shutdown, time-out; system error
		return true
	}
	return false
}
