package fault

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/internal/wait"
)

// givenUp is longer than any transaction may take: who waits for a commit has given up by then.
const givenUp = 7 * time.Second

// failedOver are the promises that a failover of PostgreSQL suspends while it lasts: it does not
// answer, and records in Redis of before are not believed, so that requests lose their leases.
var failedOver = slices.Concat(postgresUnreachable, redisUnreachable)

// standbyKinds promote the standby, which has every commit that was answered. The former primary
// then becomes the standby.
var standbyKinds = needs(SyncStandby, []Kind{
	{Name: "postgres promote", Victim: PostgreSQL, Weight: failovers, Excuses: failedOver, draw: (*Scheduler).promote},
	{
		Name: "postgres promote after the standby was cut off", Victim: PostgreSQL, Excuses: failedOver,
		draw: (*Scheduler).promoteCutOff,
	},
	{
		Name: "postgres standby pause", Victim: PostgreSQL, Excuses: postgresUnreachable,
		draw: (*Scheduler).pauseStandby,
	},
})

// promote ends the primary at once.
func (s *Scheduler) promote() *Run {
	return &Run{Hold: shortHold, victims: []string{stack.Postgres}, inject: s.promoteNow, heal: s.follow}
}

// promoteCutOff ends the primary when commits have waited for the standby for so long that their
// clients have given up, and sent their requests again. Nobody may have seen what the standby does
// not have.
func (s *Scheduler) promoteCutOff() *Run {
	r := s.promote()
	r.inject = func(ctx context.Context) error {
		if err := s.target.Stack.Do(ctx, "partition", stack.PostgresStandby, stack.Postgres); err != nil {
			return err
		}
		cut := wait.Pause(ctx, givenUp)
		return errors.Join(cut, s.promoteNow(ctx), s.target.Stack.Do(ctx, "heal", stack.PostgresStandby, stack.Postgres))
	}
	return r
}

func (s *Scheduler) promoteNow(ctx context.Context) error {
	return s.target.Stack.Do(ctx, "promote", stack.Postgres)
}

// follow makes the former primary the standby, if there was a promotion.
func (s *Scheduler) follow(ctx context.Context) error {
	if !s.target.Stack.Ended {
		return nil
	}
	return s.target.Stack.Do(ctx, "follow", stack.Postgres)
}

// pauseStandby holds all commits back.
func (s *Scheduler) pauseStandby() *Run {
	return &Run{
		victims: []string{stack.Postgres},
		inject: func(ctx context.Context) error {
			return s.target.Stack.Do(ctx, "pause", s.target.Stack.StandbyServer())
		},
		heal: func(ctx context.Context) error {
			return s.target.Stack.Do(ctx, "resume", s.target.Stack.StandbyServer())
		},
	}
}
