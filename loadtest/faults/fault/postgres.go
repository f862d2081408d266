package fault

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
)

// postgresUnreachable are the promises that need PostgreSQL to answer.
var postgresUnreachable = []books.Rule{verify.HangUpServed}

var postgresKinds = []Kind{
	{
		Name: "postgres pause", Victim: PostgreSQL, Excuses: postgresUnreachable,
		draw: process("pause", stack.Postgres, "resume"),
	},
	{
		Name: "postgres crash", Victim: PostgreSQL, Excuses: postgresUnreachable,
		draw: process("crash", stack.Postgres, "start"),
	},
	{
		Name: "postgres silent", Victim: PostgreSQL, Excuses: postgresUnreachable,
		draw: (*Scheduler).silencePostgres,
	},
	{
		Name: "postgres table locked", Victim: PostgreSQL, Excuses: postgresUnreachable,
		draw: (*Scheduler).lockTable,
	},
	{
		Name: "postgres table locked for long", Victim: PostgreSQL, Excuses: postgresUnreachable,
		draw: (*Scheduler).lockTableForLong,
	},
}

// silencePostgres drops every packet on the way to the database, as a broken switch does.
func (s *Scheduler) silencePostgres() *Run {
	return &Run{inject: s.onBoth("partition", stack.Postgres), heal: s.onBoth("heal", stack.Postgres)}
}

// lockTable makes every other transaction wait for a table.
func (s *Scheduler) lockTable() *Run {
	tables := []string{"orders", "idempotency_keys", "payments", "outbox", "wallets", "inbox"}
	return s.lock(tables[s.random.IntN(len(tables))])
}

// forLong is longer than nginx waits for the answer to a request that changes something, and longer
// than two handlers' deadlines: clients that wait for each other's answers wait for all of it.
const forLong = 20 * time.Second

// lockTableForLong makes top-ups take longer than any client but a patient one waits.
func (s *Scheduler) lockTableForLong() *Run {
	r := s.lock("wallets")
	r.Label, r.Hold = "lock wallets for long", forLong
	return r
}

func (s *Scheduler) lock(table string) *Run {
	var conn *pgx.Conn
	return &Run{
		Label: "lock " + table, victims: []string{stack.Postgres},
		inject: func(ctx context.Context) (err error) {
			conn, err = pgx.Connect(ctx, stack.PostgresURL(s.target.Stack.PostgresPrimary()))
			if err != nil {
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
		},
	}
}
