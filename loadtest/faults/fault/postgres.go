package fault

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
)

// postgresUnreachable are the promises that need PostgreSQL to answer.
var postgresUnreachable = []books.Rule{verify.HangUpServed}

var postgresKinds = each([]Kind{
	{Name: "postgres pause", command: "pause postgres"},
	{Name: "postgres crash", command: "crash postgres"},
	// Every packet on the way to the database is dropped, as a broken switch does.
	{Name: "postgres silent", victims: []string{stack.Postgres}, command: "partition api-1 postgres; partition api-2 postgres"},
	{Name: "postgres table locked", draw: lock("orders", "idempotency_keys", "payments", "outbox", "wallets", "inbox")},
	// Top-ups take longer than any client but a patient one waits.
	{Name: "postgres table locked for long", Hold: forLong, draw: lock("wallets")},
}, func(k *Kind) { k.Excuses = postgresUnreachable })

// forLong is longer than nginx waits for the answer to a request that changes something, and longer
// than two handlers' deadlines: clients that wait for each other's answers wait for all of it.
const forLong = 20 * time.Second

// lock makes every other transaction wait for one of these tables.
func lock(tables ...string) draw {
	return func(s *Scheduler, r *Run) {
		table := oneOf(s, tables...)
		r.Label += ": " + table
		r.victims = append(r.victims, stack.Postgres)
		var conn *pgx.Conn
		r.Inject = func(ctx context.Context) (err error) {
			conn, err = pgx.Connect(ctx, stack.PostgresURL(s.Stack.PostgresPrimary()))
			if err != nil {
				return err
			}
			_, err = conn.Exec(ctx, "BEGIN; LOCK TABLE "+table+" IN ACCESS EXCLUSIVE MODE")
			return err
		}
		r.Heal = func(ctx context.Context) error {
			if conn != nil {
				_ = conn.Close(ctx) // the server may have gone in the meantime
			}
			return nil
		}
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
	{Name: "postgres promote", Weight: failovers, Hold: shortHold, Excuses: failedOver, draw: (*Scheduler).promote},
	{Name: "postgres promote after the standby was cut off", Hold: shortHold, Excuses: failedOver, draw: (*Scheduler).promoteCutOff},
	{Name: "postgres standby pause", Excuses: postgresUnreachable, command: "pause standby"}, // no commit ends
}, func(k *Kind) { k.Needs, k.victims = SyncStandby, []string{stack.Postgres} })

// promote ends the primary at once.
func (s *Scheduler) promote(r *Run) {
	r.Inject = func(ctx context.Context) error { return s.Stack.Do(ctx, "promote", stack.Postgres) }
	r.Heal = func(ctx context.Context) error {
		if !s.Stack.Ended {
			return nil // there was no promotion
		}
		return s.Stack.Do(ctx, "follow", stack.Postgres) // the former primary becomes the standby
	}
}

// promoteCutOff ends the primary when commits have waited for the standby for so long that their
// clients have given up, and sent their requests again. Nobody may have seen what the standby does
// not have.
func (s *Scheduler) promoteCutOff(r *Run) {
	s.promote(r)
	promote := r.Inject
	r.Inject = steps(
		s.do("partition", "standby", stack.Postgres),
		all(pause(givenUp), promote, s.do("heal", "standby", stack.Postgres)))
}
