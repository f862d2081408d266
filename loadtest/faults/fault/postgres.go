package fault

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/internal/wait"
	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
)

// postgresUnreachable are the promises that need PostgreSQL to answer.
var postgresUnreachable = []books.Rule{verify.HangUpServed}

var postgresKinds = each([]Kind{
	{Name: "postgres pause", draw: process("pause", stack.Postgres, "resume")},
	{Name: "postgres crash", draw: process("crash", stack.Postgres, "start")},
	{Name: "postgres silent", draw: (*Scheduler).silencePostgres},
	{Name: "postgres table locked", draw: (*Scheduler).lockTable},
	{Name: "postgres table locked for long", draw: lasting(forLong, (*Scheduler).lockWallets)},
}, func(k *Kind) { k.Victim, k.Excuses = PostgreSQL, postgresUnreachable })

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

// lockWallets makes top-ups wait; for long, they take longer than any client but a patient one
// waits.
func (s *Scheduler) lockWallets() *Run {
	r := s.lock("wallets")
	r.Label += " for long"
	return r
}

func (s *Scheduler) lock(table string) *Run {
	var conn *pgx.Conn
	return &Run{
		Label: "lock " + table, victims: []string{stack.Postgres},
		inject: func(ctx context.Context) (err error) {
			conn, err = pgx.Connect(ctx, stack.PostgresURL(s.Stack.PostgresPrimary()))
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

// givenUp is longer than any transaction may take: who waits for a commit has given up by then.
const givenUp = 7 * time.Second

// failedOver are the promises that a failover of PostgreSQL suspends while it lasts: it does not
// answer, and records in Redis of before are not believed, so that requests lose their leases.
var failedOver = slices.Concat(postgresUnreachable, redisUnreachable)

// standbyKinds promote the standby, which has every commit that was answered. The former primary
// then becomes the standby.
var standbyKinds = each([]Kind{
	{Name: "postgres promote", Weight: failovers, Excuses: failedOver, draw: (*Scheduler).promote},
	{Name: "postgres promote after the standby was cut off", Excuses: failedOver, draw: (*Scheduler).promoteCutOff},
	{Name: "postgres standby pause", Excuses: postgresUnreachable, draw: (*Scheduler).pauseStandby},
}, func(k *Kind) { k.Victim, k.Needs = PostgreSQL, SyncStandby })

// promote ends the primary at once.
func (s *Scheduler) promote() *Run {
	r := &Run{Hold: shortHold, victims: []string{stack.Postgres}}
	r.inject = func(ctx context.Context) error { return s.Stack.Do(ctx, "promote", stack.Postgres) }
	r.heal = func(ctx context.Context) error {
		if !s.Stack.Ended {
			return nil // there was no promotion
		}
		return s.Stack.Do(ctx, "follow", stack.Postgres) // the former primary becomes the standby
	}
	return r
}

// promoteCutOff ends the primary when commits have waited for the standby for so long that their
// clients have given up, and sent their requests again. Nobody may have seen what the standby does
// not have.
func (s *Scheduler) promoteCutOff() *Run {
	r := s.promote()
	promote := r.inject
	r.inject = func(ctx context.Context) error {
		if err := s.Stack.Do(ctx, "partition", stack.PostgresStandby, stack.Postgres); err != nil {
			return err
		}
		cut := wait.Pause(ctx, givenUp)
		return errors.Join(cut, promote(ctx), s.Stack.Do(ctx, "heal", stack.PostgresStandby, stack.Postgres))
	}
	return r
}

// pauseStandby holds all commits back.
func (s *Scheduler) pauseStandby() *Run {
	standby := func(verb string) step {
		return func(ctx context.Context) error { return s.Stack.Do(ctx, verb, s.Stack.StandbyServer()) }
	}
	return &Run{victims: []string{stack.Postgres}, inject: standby("pause"), heal: standby("resume")}
}
