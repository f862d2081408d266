package nemesis

import (
	"context"
	"errors"
	"time"

	"github.com/oncepay/oncepay/internal/stack"
)

// process hurts a service as a whole.
func process(hurt, service, heal string) func(*Scheduler) *Fault {
	return func(s *Scheduler) *Fault {
		return &Fault{victims: []string{service}, inject: s.do(hurt, service), heal: s.do(heal, service)}
	}
}

// pausedPastLease is a pause after which whatever was held has been taken over.
func pausedPastLease(service string) func(*Scheduler) *Fault {
	return func(s *Scheduler) *Fault {
		f := process("pause", service, "resume")(s)
		f.Hold = pastLease
		return f
	}
}

func (s *Scheduler) kill() *Fault {
	r := s.replica()
	f := &Fault{Name: "kill " + r, Dies: r, rank: 1, victims: []string{r}, heal: s.do("start", r)}
	f.inject = func(ctx context.Context) error {
		f.Died = time.Now()
		return s.target.Stack.Do(ctx, "kill", r)
	}
	return f
}

// killBoth leaves nobody to take over.
func (s *Scheduler) killBoth() *Fault {
	both := func(verb string) func(context.Context) error {
		return func(ctx context.Context) (err error) {
			for _, r := range stack.Replicas {
				err = errors.Join(err, s.target.Stack.Do(ctx, verb, r))
			}
			return err
		}
	}
	return &Fault{rank: 1, victims: stack.Replicas, inject: both("kill"), heal: both("start")}
}

func (s *Scheduler) pauseReplica() *Fault {
	r := s.replica()
	return &Fault{Name: "pause " + r + " past its lease", Hold: pastLease, rank: 1, victims: []string{r}, inject: s.do("pause", r), heal: s.do("resume", r)}
}

const (
	// underWay is how slow a replica's database is made, so that many requests are in mid-work when it dies.
	underWay = 300 * time.Millisecond
	// gathering is how long they get to gather there.
	gathering = 2 * underWay
)

// dieUnderLoad kills a replica in the middle of many requests, so that nginx passes POSTs on that were being carried out. What it
// passed on is counted: each of them has come to two replicas.
func (s *Scheduler) dieUnderLoad() *Fault {
	r := s.replica()
	f := &Fault{Name: "kill " + r + " under way", Dies: r, Counts: true, rank: 1, victims: []string{r}, needs: true}
	before := 0
	f.inject = func(ctx context.Context) (err error) {
		if before, err = s.target.Stack.PassedOn(); err != nil {
			return err
		}
		if err := s.target.Stack.Do(ctx, "slow", r, stack.Postgres, underWay.String()); err != nil {
			return err
		}
		select {
		case <-time.After(gathering):
		case <-ctx.Done():
			return ctx.Err()
		}
		f.Died = time.Now()
		return s.target.Stack.Do(ctx, "kill", r)
	}
	f.heal = func(ctx context.Context) error {
		after, err := s.target.Stack.PassedOn()
		f.Hits = after - before
		return errors.Join(err, s.target.Stack.Do(ctx, "heal", r, stack.Postgres), s.target.Stack.Do(ctx, "start", r))
	}
	return f
}
