// Package postgres keeps the shop in PostgreSQL. Its transactions are those of package
// idempotency/authority: a key's row is written by the transaction whose effect it records, so
// the two can't disagree.
//
// What a client or the provider wants to be changed is a transaction of two round trips:
//
//  1. begin, look whether the key is taken, lock and load what the decision needs;
//  2. after a pure decision of package checkout: claim the key and keep the answer
//     under it, write rows, ledger entries and event, commit.
//
// An operation at the provider has one such transaction before the call and one after it. A
// decision that came too late is made again, in another transaction. Orders expire in a
// transaction without a key. All other methods of [Store] are one statement each: reads, and what
// takes, puts off or purges rows.
//
// Rows are locked in one order, so that commands do not deadlock: order, payment, refund,
// customer, wallet, key, products by SKU. Products are read without a lock, and changed last. The
// exception is an order whose decisions keep coming too late; see readProducts.
//
// What a client asks for is read and written within its account; what belongs to another one is
// not found. The reconciler, the expirer and the purger look for work in all accounts. A provider
// event names only the payment or the refund, which tells the account.
package postgres

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncepay/oncepay/idempotency/authority"
	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

// DefaultUnpaidFor is long enough to pay in peace, and short enough that abandoned orders do not
// hold the last items for long.
const DefaultUnpaidFor = 30 * time.Minute

// Options of a store.
type Options struct {
	UnpaidFor     time.Duration // how long an unpaid order holds its stock; zero: DefaultUnpaidFor
	EventsWritten func()        // is called after each commit with an event, and must not block; may be nil
	// TraceParent names the request that a context belongs to in a trace. It is kept with the key.
	// nil: no request has a name.
	TraceParent func(context.Context) string
}

// Store implements [checkout.Store] and is safe for concurrent use.
type Store struct {
	pool          *pgxpool.Pool
	unpaidFor     time.Duration
	eventsWritten func()
	traceParent   func(context.Context) string
	turns         *turns
	keys          *authority.Keys
}

var _ checkout.Store = (*Store)(nil)

// NewStore makes a store on a pool, which remains the caller's to close.
func NewStore(pool *pgxpool.Pool, options Options) *Store {
	if options.UnpaidFor == 0 {
		options.UnpaidFor = DefaultUnpaidFor
	}
	return &Store{pool: pool, unpaidFor: options.UnpaidFor, eventsWritten: options.EventsWritten, traceParent: options.TraceParent,
		turns: newTurns(), keys: authority.New(pool, authority.WithTable(keysTable, keysScope))}
}

// query is one statement.
type query[T any] func(context.Context, *dbsqlc.Queries) (T, error)

// read makes a query that changes nothing, or can as well be made twice, outside of a transaction.
// It is bounded as a whole: by the time that a statement may take and the wait for a connection. If
// the connection is lost it is made once more.
func read[T any](ctx context.Context, s *Store, q query[T]) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, transactionTimeout)
	defer cancel()
	value, lost, err := ask(ctx, s.acquire, q)
	if lost {
		value, _, err = ask(ctx, s.acquireLive, q)
	}
	return value, err
}

// write makes a single statement that changes something, and commits by itself. It is repeated only
// if the server says that it has ended the session instead. If the connection just breaks, the
// statement may have been made, and others may have changed the row in between.
func write[T any](ctx context.Context, s *Store, q query[T]) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, transactionTimeout)
	defer cancel()
	value, lost, err := ask(ctx, s.acquire, q)
	if lost && endedByServer(err) {
		value, _, err = ask(ctx, s.acquireLive, q)
	}
	return value, err
}

// endedByServer reports that the server ended the session instead of answering. It does so between
// two commands or aborts the current one, never between a commit and its answer (PostgreSQL manual,
// appendix A, 57P01 to 57P03).
func endedByServer(err error) bool {
	var server *pgconn.PgError
	return errors.As(err, &server) && server.Severity == "FATAL" && strings.HasPrefix(server.Code, classOperatorIntervention)
}

// ask makes a query on a connection, and reports whether the connection was lost.
func ask[T any](ctx context.Context, acquire func(context.Context) (*pgxpool.Conn, error), q query[T]) (value T, lost bool, err error) {
	conn, err := acquire(ctx)
	if err != nil {
		return value, false, err
	}
	defer conn.Release()
	value, err = q(ctx, dbsqlc.New(conn))
	return value, isLost(ctx, conn), err
}

// isLost reports that a connection has broken by itself: the server ended it or went away, and it
// was not our own time-out.
func isLost(ctx context.Context, conn *pgxpool.Conn) bool {
	return ctx.Err() == nil && conn.Conn().IsClosed()
}

// acquire takes a connection from the pool.
func (s *Store) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, acquireTimeout)
	defer cancel()
	conn, err := s.pool.Acquire(ctx)
	return conn, translate("connect to the database", err)
}

// acquireLive takes a connection that the database answers on. After a restart of the database the
// pool has many that it doesn't; it drops those that are found out.
func (s *Store) acquireLive(ctx context.Context) (*pgxpool.Conn, error) {
	for {
		conn, err := s.acquire(ctx)
		if err != nil || conn.Ping(ctx) == nil {
			return conn, err
		}
		conn.Release()
	}
}

// newID makes the ID of a new resource. Version 7 (RFC 9562) sorts by time, which keeps indexes
// compact and lists in order.
func newID() uuid.UUID { return uuid.Must(uuid.NewV7()) }
