//go:build !failpoints

package failpoint

import (
	"context"
	"net/http"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/outbox"
)

// Store returns what it gets.
func Store(store idempotency.Store) idempotency.Store { return store }

// Gateway returns what it gets.
func Gateway(gateway checkout.Gateway) checkout.Gateway { return gateway }

// Stream returns what it gets.
func Stream(stream outbox.Stream) outbox.Stream { return stream }

// Pool returns what it gets.
func Pool(_ context.Context, pool *pgxpool.Pool) (*pgxpool.Pool, error) { return pool, nil }

// Routes adds none.
func Routes(*http.ServeMux) {}
