package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

// AccountByKeyHash returns the account of an API key's SHA-256, or checkout.ErrUnauthorized when
// the key is unknown or revoked.
func (s *Store) AccountByKeyHash(ctx context.Context, hash [32]byte) (checkout.Account, error) {
	return read(ctx, s, func(ctx context.Context, q *dbsqlc.Queries) (checkout.Account, error) {
		row, err := q.AccountByKeyHash(ctx, hash[:])
		if errors.Is(err, pgx.ErrNoRows) {
			return checkout.Account{}, checkout.ErrUnauthorized
		}
		return checkout.Account{ID: row.ID, Name: row.Name}, translate("read the account of an API key", err)
	})
}
