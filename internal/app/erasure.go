package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncepay/oncepay/idempotency/redisstore"
	"github.com/oncepay/oncepay/internal/postgres"
)

const whatRemains = `customer %s is erased: name, e-mail address, %d shipping addresses, %d waiting mails, %d kept answers
What remains, and why:
- orders, payments, refunds, wallet and ledger, by the customer's ID: the books need them
- card tokens of the provider: refunds and disputes need them
- idempotency keys and hashes of requests, until they expire: a retry gets 409, and has no second effect
- what is elsewhere: mails that were sent, the provider's records, logs, backups
`

// EraseCustomer erases the personal data of a customer in PostgreSQL and Redis, and writes what
// remains. It may be repeated, also after an error.
func EraseCustomer(ctx context.Context, cfg Config, log *slog.Logger, w io.Writer, customer uuid.UUID) error {
	if cfg.Store == StoreRedis {
		if err := requireSet("REDIS_URL", cfg.RedisURL); err != nil {
			return err
		}
	}
	if cfg.Environment == Production {
		if err := inProduction(cfg.checkRedis()); err != nil {
			return err
		}
	}
	return withDatabase(ctx, cfg, log, func(pool *pgxpool.Pool) error {
		erased, err := postgres.NewStore(pool, postgres.Options{}).EraseCustomer(ctx, customer)
		if err != nil {
			return err
		}
		if err := forgetAnswers(ctx, cfg.RedisURL, erased); err != nil {
			return fmt.Errorf("PostgreSQL has no personal data of the customer, Redis may have some for two days: repeat the command: %w", err)
		}
		administration(log, pool).InfoContext(ctx, "a customer was erased", "account", erased.Account, "customer", customer)
		_, err = fmt.Fprintf(w, whatRemains, customer, erased.Addresses, erased.Mails, erased.Answers)
		return err
	})
}

// forgetAnswers deletes records in Redis, those of earlier timelines too.
func forgetAnswers(ctx context.Context, url string, erased postgres.Erased) error {
	if url == "" {
		return nil
	}
	client, err := redisstore.Open(url)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	for _, timeline := range erased.Timelines {
		records := redisstore.New(client, redisstore.WithGeneration(timeline.String))
		for _, key := range erased.Keys {
			if err := records.Forget(ctx, erased.Account.String(), key); err != nil {
				return err
			}
		}
	}
	return nil
}
