package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncepay/oncepay/internal/access"
	"github.com/oncepay/oncepay/internal/postgres"
)

// shownOnce is said with each new API key.
const shownOnce = "it is not shown again, and works within seconds; later it is known by its beginning"

// AddAccount adds an account and writes its ID.
func AddAccount(ctx context.Context, cfg Config, log *slog.Logger, w io.Writer, name string) error {
	return withAdmin(ctx, cfg, log, func(admin access.Admin) error {
		id := uuid.Must(uuid.NewV7())
		if err := admin.AddAccount(ctx, id, name); err != nil {
			return err
		}
		_, err := fmt.Fprintln(w, id)
		return err
	})
}

// SuspendAccount has every API key of an account refused, or accepted again.
func SuspendAccount(ctx context.Context, cfg Config, log *slog.Logger, w io.Writer, account uuid.UUID, suspended bool) error {
	return withAdmin(ctx, cfg, log, func(admin access.Admin) error {
		found, err := admin.SuspendAccount(ctx, account, suspended)
		return report(w, found, err, fmt.Sprintf("account %s: suspended %t", account, suspended), "there is no such account")
	})
}

// IssueAPIKey makes an API key and writes it. It expires after a while, or never if that is zero.
func IssueAPIKey(ctx context.Context, cfg Config, log *slog.Logger, w io.Writer, account uuid.UUID, readOnly bool, after time.Duration) error {
	return withAdmin(ctx, cfg, log, func(admin access.Admin) error {
		issue := access.Issue{Account: account, ReadOnly: readOnly}
		if after > 0 {
			expires := time.Now().Add(after)
			issue.Expires = &expires
		}
		key, prefix, hash := access.NewAPIKey()
		found, err := admin.IssueAPIKey(ctx, prefix, hash, issue)
		return report(w, found, err, key+"\n"+shownOnce+", "+prefix, "there is no such account")
	})
}

// RevokeAPIKey ends an API key.
func RevokeAPIKey(ctx context.Context, cfg Config, log *slog.Logger, w io.Writer, prefix string) error {
	return withAdmin(ctx, cfg, log, func(admin access.Admin) error {
		found, err := admin.RevokeAPIKey(ctx, prefix)
		return report(w, found, err, prefix+" is revoked; replicas notice within AUTH_CACHE_TTL", "there is no such key that is not revoked")
	})
}

// RotateAPIKey makes an API key with the rights of another one, which ends after the grace, and
// writes it.
func RotateAPIKey(ctx context.Context, cfg Config, log *slog.Logger, w io.Writer, old string, grace time.Duration) error {
	return withAdmin(ctx, cfg, log, func(admin access.Admin) error {
		key, prefix, hash := access.NewAPIKey()
		found, err := admin.RotateAPIKey(ctx, old, prefix, hash, grace)
		return report(w, found, err, key+"\n"+shownOnce+", "+prefix+"; "+old+" ends in "+grace.String(), "there is no such key that is not revoked")
	})
}

// ListAPIKeys writes a table of all API keys.
func ListAPIKeys(ctx context.Context, cfg Config, log *slog.Logger, w io.Writer) error {
	return withAdmin(ctx, cfg, log, func(admin access.Admin) error { return access.List(ctx, admin, w) })
}

func withAdmin(ctx context.Context, cfg Config, log *slog.Logger, do func(access.Admin) error) error {
	return withDatabase(ctx, cfg, log, func(pool *pgxpool.Pool) error {
		return do(postgres.NewStore(pool, postgres.Options{}))
	})
}

func report(w io.Writer, found bool, err error, done, missing string) error {
	switch {
	case err != nil:
		return err
	case !found:
		return fmt.Errorf("nothing was changed: %s", missing)
	}
	_, err = fmt.Fprintln(w, done)
	return err
}
