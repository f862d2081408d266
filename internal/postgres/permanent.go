package postgres

import (
	"errors"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/oncepay/oncepay/idempotency/authority"
)

// rejection matches the errors of PgBouncer that waiting does not change. It gives the same code,
// 08P01, to those that it has while its server is away.
var rejection = regexp.MustCompile(`^(unsupported startup parameter|(password|SASL) authentication failed|no such database)|pooling mode`)

// IsPermanent reports that waiting does not help: the server is there, and rejects the settings.
func IsPermanent(err error) bool {
	var server *pgconn.PgError
	switch {
	case errors.Is(err, authority.ErrQueryMode):
		return true
	case !errors.As(err, &server):
		return false
	case server.Code == "08P01":
		return rejection.MatchString(server.Message)
	}
	return strings.HasPrefix(server.Code, "28") || server.Code == "3D000" // the user or its password; no such database
}
