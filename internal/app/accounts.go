package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/user"
	"strconv"
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
	return withAdmin(ctx, cfg, log, func(admin access.Admin, log *slog.Logger) error {
		id := uuid.Must(uuid.NewV7())
		if err := admin.AddAccount(ctx, id, name); err != nil {
			return err
		}
		log.InfoContext(ctx, "an account was added", "account", id, "name", name)
		_, err := fmt.Fprintln(w, id)
		return err
	})
}

// SuspendAccount has every API key of an account refused, or accepted again.
func SuspendAccount(ctx context.Context, cfg Config, log *slog.Logger, w io.Writer, account uuid.UUID, suspended bool) error {
	return withAdmin(ctx, cfg, log, func(admin access.Admin, log *slog.Logger) error {
		found, err := admin.SuspendAccount(ctx, account, suspended)
		if err := mustFind(found, err, "there is no such account"); err != nil {
			return err
		}
		log.InfoContext(ctx, "an account was suspended or activated", "account", account, "suspended", suspended)
		_, err = fmt.Fprintf(w, "account %s: suspended %t\n", account, suspended)
		return err
	})
}

// IssueAPIKey makes an API key and writes it. It expires after a while, or never if that is zero.
func IssueAPIKey(ctx context.Context, cfg Config, log *slog.Logger, w io.Writer, account uuid.UUID, readOnly bool, after time.Duration) error {
	return withAdmin(ctx, cfg, log, func(admin access.Admin, log *slog.Logger) error {
		issue := access.Issue{Account: account, ReadOnly: readOnly}
		if after > 0 {
			expires := time.Now().Add(after)
			issue.Expires = &expires
		}
		key, prefix, hash := access.NewAPIKey()
		found, err := admin.IssueAPIKey(ctx, prefix, hash, issue)
		if err := mustFind(found, err, "there is no such account"); err != nil {
			return err
		}
		log.InfoContext(ctx, "an API key was issued", "account", account, "api_key", prefix, "read_only", readOnly, "expires", issue.Expires)
		_, err = fmt.Fprintf(w, "%s\n%s, %s\n", key, shownOnce, prefix)
		return err
	})
}

// RevokeAPIKey ends an API key.
func RevokeAPIKey(ctx context.Context, cfg Config, log *slog.Logger, w io.Writer, prefix string) error {
	return withAdmin(ctx, cfg, log, func(admin access.Admin, log *slog.Logger) error {
		found, err := admin.RevokeAPIKey(ctx, prefix)
		if err := mustFind(found, err, "there is no such key that is not revoked"); err != nil {
			return err
		}
		log.InfoContext(ctx, "an API key was revoked", "api_key", prefix)
		_, err = fmt.Fprintf(w, "%s is revoked; replicas notice within AUTH_CACHE_TTL\n", prefix)
		return err
	})
}

// RotateAPIKey makes an API key with the rights and the end of another one, which ends after the
// grace, and writes it.
func RotateAPIKey(ctx context.Context, cfg Config, log *slog.Logger, w io.Writer, old string, grace time.Duration) error {
	return withAdmin(ctx, cfg, log, func(admin access.Admin, log *slog.Logger) error {
		key, prefix, hash := access.NewAPIKey()
		found, err := admin.RotateAPIKey(ctx, old, prefix, hash, grace)
		const missing = "there is no such key, or it is revoked or has expired: \"apikey list\" shows it, and \"apikey issue\" makes a new one"
		if err := mustFind(found, err, missing); err != nil {
			return err
		}
		log.InfoContext(ctx, "an API key was rotated", "old_api_key", old, "api_key", prefix, "grace", grace.String())
		_, err = fmt.Fprintf(w, "%s\n%s, %s; %s ends in %s\n", key, shownOnce, prefix, old, grace)
		return err
	})
}

// ListAPIKeys writes a table of all API keys.
func ListAPIKeys(ctx context.Context, cfg Config, log *slog.Logger, w io.Writer) error {
	return withAdmin(ctx, cfg, log, func(admin access.Admin, _ *slog.Logger) error { return access.List(ctx, admin, w) })
}

func withAdmin(ctx context.Context, cfg Config, log *slog.Logger, do func(access.Admin, *slog.Logger) error) error {
	return withDatabase(ctx, cfg, log, func(pool *pgxpool.Pool) error {
		return do(postgres.NewStore(pool, postgres.Options{}), administration(log, pool))
	})
}

// administration is a log that says who administers: the user and host of the command, and the role
// of PostgreSQL.
func administration(log *slog.Logger, pool *pgxpool.Pool) *slog.Logger {
	return log.With("event", "administration", "operator", operator(), "role", pool.Config().ConnConfig.User)
}

func operator() string {
	host, _ := os.Hostname()
	if found, err := user.Current(); err == nil { // an image has a number, and may have no name for it
		return found.Username + "@" + host
	}
	return strconv.Itoa(os.Getuid()) + "@" + host
}

func mustFind(found bool, err error, missing string) error {
	if err == nil && !found {
		return fmt.Errorf("nothing was changed: %s", missing)
	}
	return err
}
