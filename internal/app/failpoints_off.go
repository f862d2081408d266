//go:build !failpoints

package app

import (
	"context"
	"net/http"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncepay/oncepay/idempotency"
	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/outbox"
)

// Failpoints exist only with the build tag of that name; see failpoints.go.

func failStore(store idempotency.Store) idempotency.Store { return store }

func failGateway(gateway checkout.Gateway) checkout.Gateway { return gateway }

func failStream(stream outbox.Stream) outbox.Stream { return stream }

func failPool(_ context.Context, pool *pgxpool.Pool) (*pgxpool.Pool, error) { return pool, nil }

func failRoutes(*http.ServeMux) {}
