package fault

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/internal/wait"
	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
)

// interrupted are the promises that the end or the pause of a replica suspends: nginx passes its
// requests on, so that a client meets its own first copy, and requests end with their process.
var interrupted = []books.Rule{verify.WaitedFor, verify.HangUpServed, verify.ReplicaAvailable}

var replicaKinds = []Kind{
	{Name: "replica kill", Victim: Replicas, Excuses: interrupted, draw: (*Scheduler).killReplica},
	{Name: "both replicas kill", Victim: Replicas, Excuses: interrupted, draw: (*Scheduler).killBoth},
	{
		Name: "nginx passes on while a replica dies", Victim: Replicas, Excuses: interrupted,
		draw: (*Scheduler).dieUnderLoad,
	},
	{
		Name: "replica pause", Victim: Replicas,
		Excuses: append([]books.Rule{verify.LeaseKept}, interrupted...), draw: (*Scheduler).pauseReplica,
	},
	{
		Name: "replica pause past the nginx timeout", Victim: Replicas,
		Excuses: append([]books.Rule{verify.LeaseKept}, interrupted...), draw: (*Scheduler).pauseForLong,
	},
	{
		Name: "replica pause while products change", Victim: Replicas,
		Excuses: append([]books.Rule{verify.LeaseKept}, interrupted...), draw: (*Scheduler).pauseWhileRestocking,
	},
}

// process breaks and heals a service as a whole.
func process(breaks, service, heals string) func(*Scheduler) *Run {
	return func(s *Scheduler) *Run {
		return &Run{victims: []string{service}, inject: s.do(breaks, service), heal: s.do(heals, service)}
	}
}

// pausedPastLease is a pause after which other attempts have taken over every key.
func pausedPastLease(service string) func(*Scheduler) *Run {
	return func(s *Scheduler) *Run {
		r := process("pause", service, "resume")(s)
		r.Hold = pastLease
		return r
	}
}

func (s *Scheduler) killReplica() *Run {
	replica := s.replica()
	r := &Run{
		Label: "kill " + replica, Dies: replica, rank: 1, victims: []string{replica},
		heal: s.do("start", replica),
	}
	r.inject = func(ctx context.Context) error {
		r.Died = time.Now()
		return s.target.Stack.Do(ctx, "kill", replica)
	}
	return r
}

// killBoth leaves no replica to take over.
func (s *Scheduler) killBoth() *Run {
	both := func(verb string) func(context.Context) error {
		return func(ctx context.Context) (err error) {
			for _, replica := range stack.Replicas {
				err = errors.Join(err, s.target.Stack.Do(ctx, verb, replica))
			}
			return err
		}
	}
	return &Run{rank: 1, victims: stack.Replicas, inject: both("kill"), heal: both("start")}
}

func (s *Scheduler) pauseReplica() *Run {
	replica := s.replica()
	return &Run{
		Label: "pause " + replica + " past its lease", Hold: pastLease, rank: 1, Pauses: replica,
		victims: []string{replica}, inject: s.do("pause", replica), heal: s.do("resume", replica),
	}
}

// pastNginx is longer than nginx waits for the answer to an order before it passes it on: what was
// refused by the other replica still waits at this one.
const pastNginx = 18 * time.Second

func (s *Scheduler) pauseForLong() *Run {
	r := s.pauseReplica()
	r.Label, r.Hold = "pause "+r.victims[0]+" past the nginx timeout", pastNginx
	return r
}

const (
	// slowed is the delay of a replica's database, so that many requests are running when it dies.
	slowed = 300 * time.Millisecond
	// gathering is the time for these requests to arrive.
	gathering = 2 * slowed
)

// dieUnderLoad kills a replica that runs many requests, also some without a key, so that nginx
// passes on what was being executed. It counts that: each has reached two replicas.
func (s *Scheduler) dieUnderLoad() *Run {
	replica := s.replica()
	r := &Run{
		Label: "kill " + replica + " under load", Dies: replica, Counts: true, rank: 1,
		victims: stack.Replicas, traffic: true,
	}
	before, answered := 0, func() int { return 0 }
	r.inject = func(ctx context.Context) (err error) {
		if before, err = s.target.Stack.PassedOn(); err != nil {
			return err
		}
		if err := s.doNow(ctx, "slow", replica, stack.Postgres, slowed.String()); err != nil {
			return err
		}
		answered = s.restock(ctx, replica)
		if err := wait.Pause(ctx, gathering); err != nil {
			return err
		}
		r.Died = time.Now()
		return s.target.Stack.Do(ctx, "kill", replica)
	}
	r.heal = func(ctx context.Context) error {
		answered()
		after, err := s.target.Stack.PassedOn()
		r.Hits = after - before
		return errors.Join(err, s.doNow(ctx, "heal", replica, stack.Postgres),
			s.target.Stack.Do(ctx, "start", replica))
	}
	return r
}

const (
	// restocked is how many products change at once when a replica is paused: enough that some wait
	// for the processor, between two instructions, underWay after they began.
	restocked = 200
	underWay  = 30 * time.Millisecond
	// passedOn is longer than any of them takes at a replica, and shorter than nginx waits.
	passedOn = 10 * time.Second
)

// pauseWhileRestocking pauses a replica in the middle of changes of products, past the nginx
// timeout. It counts those that nginx passed on: the replica still has their first copies.
func (s *Scheduler) pauseWhileRestocking() *Run {
	r := s.pauseForLong()
	replica := r.victims[0]
	r.Label, r.Counts, r.victims = "pause "+replica+" while products change", true, slices.Concat(stack.Replicas, []string{stack.Postgres, stack.Nginx})
	answered := func() int { return 0 }
	r.inject = func(ctx context.Context) error {
		answered = s.restock(ctx, replica)
		if err := wait.Pause(ctx, underWay); err != nil {
			return err
		}
		return s.target.Stack.Do(ctx, "pause", replica)
	}
	r.heal = func(ctx context.Context) error {
		r.Hits = max(r.Hits, answered()) // and the first copies wait
		return s.target.Stack.Do(ctx, "resume", replica)
	}
	return r
}

// restock has products and customers change, and returns when the first changes are sent. Answered
// returns when the second ones are answered, how many of the first were passed on.
func (s *Scheduler) restock(ctx context.Context, broken string) (answered func() int) {
	ready, hits := make(chan struct{}), make(chan int, 1)
	go func() {
		defer close(hits)
		hits <- s.target.Restock(ctx, broken, restocked, passedOn, func() { close(ready) })
	}()
	<-ready
	return func() int { return <-hits }
}
