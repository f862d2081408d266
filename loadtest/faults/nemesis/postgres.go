package nemesis

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/internal/stack"
)

// silencePostgres swallows everything on the way to the database, as a broken switch does.
func (s *Scheduler) silencePostgres() *Fault {
	both := func(verb string) func(context.Context) error {
		return func(ctx context.Context) error {
			return errors.Join(s.target.Stack.Do(ctx, verb, stack.API1, stack.Postgres), s.target.Stack.Do(ctx, verb, stack.API2, stack.Postgres))
		}
	}
	return &Fault{inject: both("partition"), heal: both("heal")}
}

// lockTable takes a table away from everybody.
func (s *Scheduler) lockTable() *Fault {
	tables := []string{"orders", "idempotency_keys", "payments", "outbox", "wallets"}
	table := tables[s.random.IntN(len(tables))]
	var conn *pgx.Conn
	return &Fault{Name: "lock " + table, victims: []string{stack.Postgres},
		inject: func(ctx context.Context) (err error) {
			if conn, err = pgx.Connect(ctx, stack.PostgresURL(s.target.Stack.Addr(stack.Postgres))); err != nil {
				return err
			}
			_, err = conn.Exec(ctx, "BEGIN; LOCK TABLE "+table+" IN ACCESS EXCLUSIVE MODE")
			return err
		},
		heal: func(ctx context.Context) error {
			if conn != nil {
				_ = conn.Close(ctx) // the server may have gone in the meantime
			}
			return nil
		}}
}
