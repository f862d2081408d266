package authority

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// acquire takes a connection from the pool.
func (k *Keys) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, acquireTimeout)
	defer cancel()
	conn, err := k.db.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect to the database: %w", unavailable(err))
	}
	return conn, nil
}

// acquireLive takes a connection that PostgreSQL answers on. After a restart of PostgreSQL the
// pool has many that it does not; it drops those that are found out.
func (k *Keys) acquireLive(ctx context.Context) (*pgxpool.Conn, error) {
	for {
		conn, err := k.acquire(ctx)
		if err != nil || conn.Ping(ctx) == nil {
			return conn, err
		}
		conn.Release()
	}
}

// isLost reports that a connection has broken by itself: the server ended it or went away, and it
// was not our own time-out.
func isLost(ctx context.Context, conn *pgxpool.Conn) bool {
	return ctx.Err() == nil && conn.Conn().IsClosed()
}

// query makes one statement outside of a transaction, and reads its rows. If the connection turns
// out lost, and the statement may be made twice, it is made once more.
func query[T any](ctx context.Context, k *Keys, again bool, read pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	ctx, cancel := context.WithTimeout(ctx, transactionTimeout)
	defer cancel()
	conn, err := k.acquire(ctx)
	if err != nil {
		return nil, err
	}
	found, err := rowsOf(ctx, conn, read, sql, args)
	lost := isLost(ctx, conn)
	conn.Release()
	if err != nil && lost && again {
		if conn, err = k.acquireLive(ctx); err != nil {
			return nil, err
		}
		defer conn.Release()
		found, err = rowsOf(ctx, conn, read, sql, args)
	}
	return found, unavailable(err)
}

func rowsOf[T any](ctx context.Context, conn *pgxpool.Conn, read pgx.RowToFunc[T], sql string, args []any) ([]T, error) {
	rows, err := conn.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, read)
}
