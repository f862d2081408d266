package postgres

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/oncepay/oncepay/internal/checkout"
)

var (
	// errKeyTaken stops a decision: the key is taken.
	errKeyTaken = errors.New("the idempotency key is taken")

	// errOutdated is the cause of a failed commit: what was read and decided on has changed since.
	errOutdated = errors.New("what the decision was based on has changed meanwhile")

	// errUnclaimable is why a key can neither be claimed nor read.
	errUnclaimable = errors.New("the key's row is gone again, or the attempt's time is half an hour from the database's clock, or the account is gone")

	// errAbandoned is why a request without a key is not executed.
	errAbandoned = errors.New("the client has closed the connection")

	// errNoClaim is a mistake of the caller: an operation of several transactions can be resumed by
	// its key alone.
	errNoClaim = errors.New("an operation at the payment provider needs an idempotency key")
)

// SQLSTATE codes that lead to different errors (PostgreSQL manual, appendix A).
const (
	stateNotNullViolation     = "23502"
	stateUniqueViolation      = "23505"
	stateCheckViolation       = "23514"
	stateBadEncoding          = "22021" // a NUL in a text
	stateUntranslatable       = "22P05" // a NUL in a jsonb
	stateUndefinedTable       = "42P01"
	stateLockNotAvailable     = "55P03"
	stateReadOnly             = "25006" // we are talking to a standby
	stateIdleInTransaction    = "25P03"
	stateTransactionTimeout   = "25P04"
	classConnection           = "08"
	classData                 = "22"
	classIntegrity            = "23"
	classTransactionRollback  = "40" // serialization failure, deadlock
	classInsufficientResource = "53" // disk full, too many connections
	classOperatorIntervention = "57" // shutdown, statement timeout
	classSystem               = "58" // input/output error
)

const (
	// productKey is the primary key of products.
	productKey = "products_pkey"
	// emailIndex is the index that makes a customer's e-mail address unique.
	emailIndex = "customers_email"
	// stockCheck is the constraint that refuses a reservation that was decided on too early.
	stockCheck = "products_stock_not_negative"
)

// translate turns a driver's error into the domain's. Domain errors pass through. An error of ours,
// such as a violated constraint that the code should have respected, is returned as it is: a retry
// does not help.
func translate(doing string, err error) error {
	var domain *checkout.Error
	var server *pgconn.PgError
	switch {
	case err == nil || errors.As(err, &domain) || errors.Is(err, errKeyTaken):
		return err
	case !errors.As(err, &server):
		return checkout.Unavailable(doing, err) // the connection was lost, refused or too slow
	case isUnavailable(server.Code):
		return checkout.Unavailable(doing, err)
	case isOutdated(server):
		return checkout.Unavailable(doing, errors.Join(errOutdated, err))
	case server.Code == stateNotNullViolation && server.TableName == "idempotency_keys" && server.ColumnName == "status":
		return errKeyTaken // as ClaimKey says it
	case server.Code == stateBadEncoding || server.Code == stateUntranslatable:
		return &checkout.Error{Kind: checkout.KindInvalid, Code: "invalid_text", Retryable: true,
			Message: "A text contains a character that can't be stored."}
	default:
		return fmt.Errorf("%s: %w", doing, err)
	}
}

// isOutdated reports that a constraint refused what had been allowed when it was read.
func isOutdated(err *pgconn.PgError) bool {
	return err.Code == stateUniqueViolation && (err.ConstraintName == emailIndex || err.ConstraintName == productKey) ||
		err.Code == stateCheckViolation && err.ConstraintName == stockCheck
}

func isUnavailable(state string) bool {
	switch state {
	case stateLockNotAvailable, stateReadOnly, stateIdleInTransaction, stateTransactionTimeout:
		return true
	}
	switch state[:min(2, len(state))] {
	case classConnection, classTransactionRollback, classInsufficientResource, classOperatorIntervention, classSystem:
		return true
	}
	return false
}

// found translates the error of reading one resource.
func found(resource string, err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return checkout.NotFound(resource)
	}
	return translate("read "+resource, err)
}
