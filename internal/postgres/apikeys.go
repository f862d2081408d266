package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/oncepay/oncepay/internal/access"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

var _ access.Admin = (*Store)(nil)

// AddAccount implements [access.Admin].
func (s *Store) AddAccount(ctx context.Context, id uuid.UUID, name string) error {
	_, err := s.change(ctx, "add an account", func(ctx context.Context, q *dbsqlc.Queries) (int64, error) {
		return 1, q.AddAccount(ctx, dbsqlc.AddAccountParams{ID: id, Name: name})
	})
	return err
}

// SuspendAccount implements [access.Admin].
func (s *Store) SuspendAccount(ctx context.Context, id uuid.UUID, suspended bool) (bool, error) {
	return s.change(ctx, "suspend an account", func(ctx context.Context, q *dbsqlc.Queries) (int64, error) {
		return q.SuspendAccount(ctx, dbsqlc.SuspendAccountParams{ID: id, Suspended: suspended})
	})
}

// IssueAPIKey implements [access.Admin].
func (s *Store) IssueAPIKey(ctx context.Context, prefix string, hash access.Hash, issue access.Issue) (bool, error) {
	return s.change(ctx, "issue an API key", func(ctx context.Context, q *dbsqlc.Queries) (int64, error) {
		return q.IssueAPIKey(ctx, dbsqlc.IssueAPIKeyParams{Hash: hash[:], Prefix: &prefix, AccountID: issue.Account,
			ReadOnly: issue.ReadOnly, ExpiresAt: issue.Expires})
	})
}

// RevokeAPIKey implements [access.Admin].
func (s *Store) RevokeAPIKey(ctx context.Context, prefix string) (bool, error) {
	return s.change(ctx, "revoke an API key", func(ctx context.Context, q *dbsqlc.Queries) (int64, error) {
		return q.RevokeAPIKey(ctx, &prefix)
	})
}

// RotateAPIKey implements [access.Admin].
func (s *Store) RotateAPIKey(ctx context.Context, old, prefix string, hash access.Hash, grace time.Duration) (bool, error) {
	return s.change(ctx, "rotate an API key", func(ctx context.Context, q *dbsqlc.Queries) (int64, error) {
		return q.RotateAPIKey(ctx, dbsqlc.RotateAPIKeyParams{OldPrefix: &old, Hash: hash[:], Prefix: &prefix, GraceSeconds: grace.Seconds()})
	})
}

// IssuedAPIKeys implements [access.Admin].
func (s *Store) IssuedAPIKeys(ctx context.Context) ([]access.Issued, error) {
	return read(ctx, s, func(ctx context.Context, q *dbsqlc.Queries) ([]access.Issued, error) {
		rows, err := q.ListAPIKeys(ctx)
		keys := make([]access.Issued, len(rows))
		for i, row := range rows {
			keys[i] = access.Issued{Prefix: row.Prefix, Account: row.AccountID, Name: row.Name, ReadOnly: row.ReadOnly,
				Created: row.CreatedAt, Expires: row.ExpiresAt, Revoked: row.RevokedAt, Suspended: row.SuspendedAt}
		}
		return keys, translate("list the API keys", err)
	})
}

// change reports whether a statement found a row.
func (s *Store) change(ctx context.Context, what string, statement query[int64]) (found bool, err error) {
	n, err := write(ctx, s, statement)
	return n > 0, translate(what, err)
}
