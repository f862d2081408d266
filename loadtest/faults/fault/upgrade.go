package fault

import (
	"context"
	"slices"
	"time"

	"github.com/oncepay/oncepay/internal/stack"
)

// wayAndBack is a rolling update and its rollback: each replica is replaced twice.
const wayAndBack = 4

var upgradeKinds = []Kind{{
	Name: "replica of the other release", Victim: Replicas, Needs: EarlierRelease, Weight: wayAndBack,
	Excuses: interrupted, draw: (*Scheduler).swapReplica,
}}

// RolledBack says whether each replica was replaced by this release and again by the earlier one,
// unless there is no earlier one to draw.
func (s *Scheduler) RolledBack() bool {
	swaps := func(k Kind) bool { return k.Needs == EarlierRelease }
	return s.swaps >= wayAndBack || !slices.ContainsFunc(s.kinds, swaps)
}

// swapReplica replaces api-1 and then api-2 by this release, api-1 and then api-2 by the earlier
// one, and so on. The schema is migrated before the first time, and stays. api-2 is killed, while
// api-1 has the other release already, which then finishes what api-2 had begun.
func (s *Scheduler) swapReplica(r *Run) {
	replica, program, release, end := stack.Replicas[s.swaps%2], "", "this release", "stop"
	if s.swaps%wayAndBack >= 2 {
		program, release = s.Base, "the earlier release"
	}
	if replica == stack.API2 {
		end, r.Dies = "kill", replica
	}
	r.Label, r.victims = replica+" becomes "+release, []string{replica}
	r.inject = steps(s.migrate, func(ctx context.Context) error {
		if err := s.Stack.Use(ctx, replica, program); err != nil {
			return err
		}
		s.swaps++
		r.Died = time.Now()
		return s.Stack.Do(ctx, end, replica)
	}, s.do("start", replica))
}

// migrate brings the schema to this release's before the first replica is replaced, while the
// earlier one serves.
func (s *Scheduler) migrate(ctx context.Context) error {
	if s.swaps > 0 {
		return nil
	}
	if err := s.Stack.Use(ctx, stack.Oncepay, ""); err != nil {
		return err
	}
	_, err := s.Stack.Oncepay(ctx, "migrate", "up")
	return err
}
