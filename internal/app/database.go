package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncepay/oncepay/internal/outbox"
	"github.com/oncepay/oncepay/internal/postgres"
)

// Directions of Migrate. All but Up remove the schema with all data.
const (
	// Up brings the schema to the newest version, and gives the service's role its rights.
	Up = "up"
	// Down refuses while idempotency keys still count.
	Down = "down"
	// DownWithKeys removes these, too.
	DownWithKeys = "down --discard-keys"
)

// Migrate waits for the database and moves its schema Up to the newest version, or to nothing by
// Down or DownWithKeys; "version" only looks. It returns the version that the schema has then.
func Migrate(ctx context.Context, cfg Config, log *slog.Logger, direction string) (version uint, err error) {
	err = withDatabase(ctx, cfg, log, func(pool *pgxpool.Pool) error {
		if direction == Down {
			if cfg.Environment == Production {
				return fmt.Errorf("ENVIRONMENT=%s: only \"migrate %s\" removes the schema, with all data", Production, DownWithKeys)
			}
			if err := postgres.CheckKeys(ctx, pool); err != nil {
				return fmt.Errorf("%w: without them, requests that clients repeat would act again. "+
					"To go back to an earlier release, start it on this schema. \"migrate %s\" deletes everything", err, DownWithKeys)
			}
		}
		if version, err = postgres.Migrate(ctx, cfg.DatabaseURL, strings.Fields(direction)[0]); err != nil || direction != Up || cfg.DatabaseServiceRole == "" {
			return err
		}
		return postgres.Grant(ctx, pool, cfg.DatabaseServiceRole, cfg.DatabaseServicePassword)
	})
	return version, err
}

// Seed waits for the database and adds the demo data. Its API keys are known to everybody, so it
// refuses outside development.
func Seed(ctx context.Context, cfg Config, log *slog.Logger) error {
	if cfg.Environment != Development {
		return errors.New("the demo data is for development alone: set ENVIRONMENT=" + Development)
	}
	return withDatabase(ctx, cfg, log, func(pool *pgxpool.Pool) error { return postgres.Seed(ctx, pool) })
}

func withDatabase(ctx context.Context, cfg Config, log *slog.Logger, do func(*pgxpool.Pool) error) error {
	if err := cfg.RequireDatabase(); err != nil {
		return err
	}
	if cfg.Environment == Production { // the commands of operators, too, send a password
		if err := inProduction(cfg.checkDatabase()); err != nil {
			return err
		}
	}
	pool, err := postgres.Open(ctx, postgres.Config{URL: cfg.DatabaseURL, MaxConns: 1})
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := awaitPostgres(ctx, pool, cfg.StartupDeadline, log); err != nil {
		return err
	}
	return do(pool)
}

// OutboxStatus writes how far events have come.
func OutboxStatus(ctx context.Context, cfg Config, log *slog.Logger, w io.Writer) error {
	return withDatabase(ctx, cfg, log, func(pool *pgxpool.Pool) error {
		return outbox.Status(ctx, postgres.NewOutbox(pool), postgres.ConsumerGroups(), w)
	})
}

// ListEvents writes a table of the events that consumers refused, dead letters first.
func ListEvents(ctx context.Context, cfg Config, log *slog.Logger, w io.Writer, limit int) error {
	return withDatabase(ctx, cfg, log, func(pool *pgxpool.Pool) error {
		return outbox.List(ctx, postgres.NewOutbox(pool), w, limit)
	})
}

// RetryEvents makes refused events due at once; without positions, all of them.
func RetryEvents(ctx context.Context, cfg Config, log *slog.Logger, w io.Writer, positions ...int64) error {
	return withDatabase(ctx, cfg, log, func(pool *pgxpool.Pool) error {
		return outbox.Retry(ctx, postgres.NewOutbox(pool), w, positions...)
	})
}

// ReplayEvents has everything published again that happened within this long.
func ReplayEvents(ctx context.Context, cfg Config, log *slog.Logger, w io.Writer, since time.Duration) error {
	return withDatabase(ctx, cfg, log, func(pool *pgxpool.Pool) error {
		return outbox.Replay(ctx, postgres.NewOutbox(pool), w, since)
	})
}
