package authority

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// maxShared bounds the search for a session that two connections share. It is above the number of
// sessions that a pooler takes in turn.
const maxShared = 100

// ErrQueryMode says how to talk to a pooler that gives each transaction another session.
var ErrQueryMode = errors.New("a pooler gives each transaction another session, which lacks the statements that this process prepares: " +
	"add default_query_exec_mode=cache_describe to the URL of the database, or exec, or simple_protocol")

// isForeignStatement reports that a session has another connection's prepared statements.
func isForeignStatement(err error) bool {
	var server *pgconn.PgError
	return errors.As(err, &server) && (server.Code == "42P05" || server.Code == "26000")
}

// CheckPool returns nil when the database answers and a transaction works. In the query modes whose
// prepared statements outlive a transaction it returns [ErrQueryMode], if a pooler keeps no session
// for a connection. Call it at the start.
func CheckPool(ctx context.Context, pool *pgxpool.Pool) error {
	if err := checkQueryMode(ctx, pool.Config().ConnConfig); err != nil {
		return err
	}
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "SELECT $1::integer", 1)
		return err
	})
	if isForeignStatement(err) {
		return ErrQueryMode
	}
	return err
}

// checkQueryMode looks for a pooler. A server tells a connection its process, and a pooler makes up
// a number. A session that a second connection meets while the first is open is shared. A pooler
// that tracks prepared statements gives them names of its own.
func checkQueryMode(ctx context.Context, config *pgx.ConnConfig) error {
	mode := config.DefaultQueryExecMode
	if mode != pgx.QueryExecModeCacheStatement && mode != pgx.QueryExecModeDescribeExec {
		return nil
	}
	first, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer func() { _ = first.Close(context.WithoutCancel(ctx)) }()
	const probe = "oncepay_probe"
	var session uint32
	err = pgx.BeginFunc(ctx, first, func(tx pgx.Tx) error { // one session, whatever the pooler does
		const ask = "SELECT pg_backend_pid()"
		if err := tx.QueryRow(ctx, ask, pgx.QueryExecModeSimpleProtocol).Scan(&session); err != nil || session == first.PgConn().PID() {
			return err
		}
		_, err := first.PgConn().Prepare(ctx, probe, ask, nil)
		return err
	})
	switch {
	case isForeignStatement(err): // another replica's probe
		return ErrQueryMode
	case err != nil || session == first.PgConn().PID():
		return err
	}
	second, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer func() { _ = second.Close(context.WithoutCancel(ctx)) }()
	for range maxShared {
		var met uint32
		var untracked bool
		err := second.QueryRow(ctx, "SELECT pg_backend_pid(), EXISTS (SELECT FROM pg_prepared_statements WHERE name = '"+probe+"')",
			pgx.QueryExecModeSimpleProtocol).Scan(&met, &untracked)
		switch {
		case err != nil:
			return fmt.Errorf("look for a pooler: %w", err)
		case met == session && (untracked || mode == pgx.QueryExecModeDescribeExec):
			return ErrQueryMode
		case met == session:
			return nil
		}
	}
	return nil
}
