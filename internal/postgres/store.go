// Package postgres keeps the shop in PostgreSQL. It is also the authority on
// idempotency keys: a key's row is written by the transaction whose effect it
// stands for, so the two can't disagree.
//
// Each exported method of [Store] is one transaction, and all that write have
// one shape and two round trips:
//
//  1. begin, claim the key, lock and load what the decision needs;
//  2. after a pure decision of package checkout: write rows, ledger entries and
//     event, keep the reply under the key, commit.
//
// Rows are locked in one order, so that no two commands deadlock: key, order,
// payment, refund, customer, wallet, products by SKU. Everything is read and
// written within an account; what belongs to another one is not found.
package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

// DefaultUnpaidFor is long enough to find one's wallet, and short enough that
// the last items are not held by those who left.
const DefaultUnpaidFor = 30 * time.Minute

// Options of a store.
type Options struct {
	UnpaidFor time.Duration // how long an unpaid order holds its stock; zero: DefaultUnpaidFor
}

// Store implements [checkout.Store] and is safe for concurrent use.
type Store struct {
	pool      *pgxpool.Pool
	unpaidFor time.Duration
}

var _ checkout.Store = (*Store)(nil)

// NewStore makes a store on a pool, which remains the caller's to close.
func NewStore(pool *pgxpool.Pool, options Options) *Store {
	if options.UnpaidFor == 0 {
		options.UnpaidFor = DefaultUnpaidFor
	}
	return &Store{pool: pool, unpaidFor: options.UnpaidFor}
}

// read makes one query outside of a transaction. It is bounded as a whole: by
// the time that a statement may take and the wait for a connection.
func read[T any](ctx context.Context, s *Store, query func(context.Context, *dbsqlc.Queries) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, transactionTimeout)
	defer cancel()
	conn, err := s.acquire(ctx)
	if err != nil {
		var none T
		return none, err
	}
	defer conn.Release()
	return query(ctx, dbsqlc.New(conn))
}

// acquire takes a connection from the pool.
func (s *Store) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, acquireTimeout)
	defer cancel()
	conn, err := s.pool.Acquire(ctx)
	return conn, translate("connect to the database", err)
}

// newID makes the ID of a new resource. Version 7 (RFC 9562) sorts by time,
// which keeps indexes compact and lists in order.
func newID() uuid.UUID { return uuid.Must(uuid.NewV7()) }
