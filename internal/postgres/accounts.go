package postgres

import (
	"context"

	"github.com/google/uuid"

	"github.com/oncepay/oncepay/internal/access"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

var _ access.Store = (*Store)(nil)

// APIKeysVersion implements [access.Store].
func (s *Store) APIKeysVersion(ctx context.Context) (uuid.UUID, error) {
	return read(ctx, s, func(ctx context.Context, q *dbsqlc.Queries) (uuid.UUID, error) {
		version, err := q.APIKeysVersion(ctx)
		return version, translate("read the version of the API keys", err)
	})
}

// APIKeys implements [access.Store].
func (s *Store) APIKeys(ctx context.Context, after access.Hash, limit int) ([]access.HashedKey, error) {
	return read(ctx, s, func(ctx context.Context, q *dbsqlc.Queries) ([]access.HashedKey, error) {
		rows, err := q.APIKeys(ctx, dbsqlc.APIKeysParams{After: after[:], PageSize: int32(limit)})
		keys := make([]access.HashedKey, len(rows))
		for i, row := range rows {
			keys[i] = access.HashedKey{Hash: access.Hash(row.Hash), Ended: row.Ended, Key: access.NewKey(row.AccountID, row.ReadOnly, row.Suspended, row.ExpiresAt)}
		}
		return keys, translate("read the API keys", err)
	})
}
