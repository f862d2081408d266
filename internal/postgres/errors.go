package postgres

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/oncepay/oncepay/idempotency/authority"
	"github.com/oncepay/oncepay/internal/checkout"
)

// errOutdated is the cause of a failed commit: what was read and decided on has changed since.
var errOutdated = errors.New("what the decision was based on has changed meanwhile")

// SQLSTATE codes that lead to different errors (PostgreSQL manual, appendix A).
const (
	stateNotNull         = "23502"
	stateUniqueViolation = "23505"
	stateCheckViolation  = "23514"
	stateBadEncoding     = "22021" // a NUL in a text
	stateUntranslatable  = "22P05" // a NUL in a jsonb
	stateUndefinedTable  = "42P01"

	classData                 = "22"
	classIntegrity            = "23"
	classOperatorIntervention = "57" // shutdown, statement timeout
)

const (
	// productKey is the primary key of products.
	productKey = "products_pkey"
	// emailIndex is the index that makes a customer's e-mail address unique.
	emailIndex = "customers_email"
	// stockCheck is the constraint that refuses a reservation that was decided on too early.
	stockCheck = "products_stock_not_negative"
)

// translate turns an error of the driver or of the authority into the domain's. Domain errors pass
// through. An error of ours, such as a violated constraint that the code should have respected, is
// returned as it is: a retry does not help.
func translate(doing string, err error) error {
	var domain *checkout.Error
	var taken *authority.Taken
	var server *pgconn.PgError
	switch {
	case err == nil || errors.As(err, &domain):
		return err
	case errors.As(err, &taken):
		return errorOf(taken)
	case errors.As(err, &server) && isOutdated(server):
		return checkout.Unavailable(doing, errors.Join(errOutdated, err))
	case errors.As(err, &server) && (server.Code == stateBadEncoding || server.Code == stateUntranslatable):
		return &checkout.Error{Kind: checkout.KindInvalid, Code: "invalid_text", Retryable: true,
			Message: "A text contains a character that can't be stored."}
	case authority.IsUnavailable(err), errors.As(err, &server) && server.TableName == "outbox" && server.Code == stateNotNull: // InsertEvent
		return checkout.Unavailable(doing, err)
	default:
		return fmt.Errorf("%s: %w", doing, err)
	}
}

// isOutdated reports that a constraint refused what had been allowed when it was read.
func isOutdated(err *pgconn.PgError) bool {
	return err.Code == stateUniqueViolation && (err.ConstraintName == emailIndex || err.ConstraintName == productKey) ||
		err.Code == stateCheckViolation && err.ConstraintName == stockCheck
}

// found translates the error of reading one resource.
func found(resource string, err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return checkout.NotFound(resource)
	}
	return translate("read "+resource, err)
}
