package fault

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
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

// paused are those that its pause suspends.
var paused = slices.Concat([]books.Rule{verify.LeaseKept}, interrupted)

var replicaKinds = each([]Kind{
	{Name: "replica kill", Excuses: interrupted, draw: (*Scheduler).killReplica},
	{Name: "both replicas kill", Excuses: interrupted, draw: (*Scheduler).killBoth},
	{Name: "nginx passes on while a replica dies", Excuses: interrupted, draw: (*Scheduler).dieUnderLoad},
	{Name: "replica pause", Excuses: paused, draw: pauseReplica("past its lease", pastLease)},
	{Name: "replica pause past the nginx timeout", Excuses: paused, draw: pauseReplica("past the nginx timeout", pastNginx)},
	{Name: "replica pause while products change", Excuses: paused, draw: (*Scheduler).pauseWhileRestocking},
}, func(k *Kind) { k.Victim = Replicas })

// process breaks and heals a service as a whole.
func process(breaks, service, heals string) draw {
	return func(s *Scheduler) *Run {
		return &Run{victims: []string{service}, inject: s.do(breaks, service), heal: s.do(heals, service)}
	}
}

func (s *Scheduler) killReplica() *Run {
	replica := s.replica()
	r := &Run{Label: "kill " + replica, Dies: replica, Rank: 1, victims: []string{replica}, heal: s.do("start", replica)}
	r.inject = s.end(r, "kill", replica)
	return r
}

// end is a step that ends a replica, and notes when.
func (s *Scheduler) end(r *Run, verb, replica string) step {
	return func(ctx context.Context) error {
		r.Died = time.Now()
		return s.Stack.Do(ctx, verb, replica)
	}
}

// killBoth leaves no replica to take over.
func (s *Scheduler) killBoth() *Run {
	return &Run{Rank: 1, victims: stack.Replicas, inject: s.onBoth("kill"), heal: s.onBoth("start")}
}

func pauseReplica(label string, hold time.Duration) draw {
	return func(s *Scheduler) *Run {
		replica := s.replica()
		return &Run{
			Label: "pause " + replica + " " + label, Hold: hold, Rank: 1, Pauses: replica,
			victims: []string{replica}, inject: s.do("pause", replica), heal: s.do("resume", replica),
		}
	}
}

// pastNginx is longer than nginx waits for the answer to an order before it passes it on: what was
// refused by the other replica still waits at this one.
const pastNginx = 18 * time.Second

const (
	// slowed is the delay of a replica's database, so that many requests are running when it dies.
	slowed = 300 * time.Millisecond
	// arriving is the time for these requests to arrive.
	arriving = 2 * slowed
)

// dieUnderLoad kills a replica that runs many requests, also some without a key, so that nginx
// passes on what was being executed. It counts that: each has reached two replicas.
func (s *Scheduler) dieUnderLoad() *Run {
	replica := s.replica()
	r := &Run{
		Label: "kill " + replica + " under load", Dies: replica, Counts: true, Rank: 1,
		victims: stack.Replicas, traffic: true,
	}
	before, passed := 0, func() int { return 0 }
	r.inject = func(ctx context.Context) (err error) {
		if before, err = s.Stack.PassedOn(); err != nil {
			return err
		}
		if err := s.do("slow", replica, stack.Postgres, slowed.String())(ctx); err != nil {
			return err
		}
		passed = s.restock(ctx, replica)
		return steps(pause(arriving), s.end(r, "kill", replica))(ctx)
	}
	r.heal = func(ctx context.Context) error {
		passed()
		after, err := s.Stack.PassedOn()
		r.Hits = after - before
		return errors.Join(err, s.do("heal", replica, stack.Postgres)(ctx), s.Stack.Do(ctx, "start", replica))
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
	r := pauseReplica("while products change", pastNginx)(s)
	r.Counts, r.victims = true, slices.Concat(stack.Replicas, []string{stack.Postgres, stack.Nginx})
	passed := func() int { return 0 }
	r.inject = func(ctx context.Context) error {
		passed = s.restock(ctx, r.Pauses)
		return steps(pause(underWay), s.do("pause", r.Pauses))(ctx)
	}
	r.heal = func(ctx context.Context) error {
		r.Hits = max(r.Hits, passed()) // and the first copies wait
		return s.Stack.Do(ctx, "resume", r.Pauses)
	}
	return r
}

// restock has products and customers change, and returns when the first changes are sent. Passed
// returns when the second ones are answered, how many of the first were passed on.
func (s *Scheduler) restock(ctx context.Context, broken string) (passed func() int) {
	ready, hits := make(chan struct{}), make(chan int, 1)
	go func() {
		defer close(hits)
		hits <- s.Clients.Restock(ctx, broken, restocked, passedOn, func() { close(ready) })
	}()
	<-ready
	return func() int { return <-hits }
}

const (
	// fireTimeout is how long an armed failpoint may wait for a request to reach it.
	fireTimeout = 6 * time.Second
	// tick is how often a failpoint is checked.
	tick = 50 * time.Millisecond
)

// afterAcquire is where a request holds its key and its heartbeat has not begun.
const afterAcquire = "after-acquire"

// afterPublish is where a relay has published and not yet advanced its cursor.
const afterPublish = "after-publish"

// points are the instructions of a request at which a replica can die or pause.
var points = []string{
	afterAcquire, "before-provider", "after-provider", "before-commit", "after-commit", "before-complete",
}

var requestKinds = each(append(deaths(),
	Kind{Name: "kill " + afterPublish, Breaks: []Damage{RelayRepeats}, Excuses: interrupted, draw: (*Scheduler).killRelay},
	Kind{Name: "request pause", Excuses: []books.Rule{verify.HangUpServed}, draw: (*Scheduler).pauseRequest},
), func(k *Kind) { k.Victim = Replicas })

// deaths are one kind for each point, so that each is drawn in every round.
func deaths() (kinds []Kind) {
	for _, point := range points {
		kinds = append(kinds, Kind{Name: "kill " + point, Excuses: interrupted, draw: func(s *Scheduler) *Run { return s.dieAt(point) }})
	}
	return kinds
}

// dieAt kills a replica at an instruction.
func (s *Scheduler) dieAt(point string) *Run {
	replica, skip := s.replica(), s.random.IntN(20)
	if point == "before-provider" || point == "after-provider" {
		skip = s.random.IntN(5) // rarer
	}
	r := &Run{
		Label: "kill " + replica + " " + point, Dies: replica, Rank: 1, victims: []string{replica},
		traffic: true,
	}
	r.inject = func(ctx context.Context) error {
		err := s.failpoint(ctx, http.MethodPost, replica, fmt.Sprintf("/%s?skip=%d", point, skip))
		if err != nil && s.lives(ctx, replica) { // otherwise it has died there before it could answer
			return err
		}
		r.Died = time.Now()
		return until(ctx, func() bool {
			looked := time.Now()
			lives := s.lives(ctx, replica)
			if lives {
				r.Died = looked
			}
			return !lives
		})
	}
	r.heal = func(ctx context.Context) error {
		_ = s.failpoint(ctx, http.MethodDelete, replica, "") // a dead replica has none armed
		return s.Stack.Do(ctx, "start", replica)
	}
	return r
}

// killRelay kills the replica whose relay holds the lease: it tries one after the other.
func (s *Scheduler) killRelay() *Run {
	first, second := s.dieAt(afterPublish), s.dieAt(afterPublish)
	for second.Dies == first.Dies {
		second = s.dieAt(afterPublish)
	}
	return &Run{
		Label: "kill a relay " + afterPublish, Rank: 1, victims: stack.Replicas, traffic: true,
		inject: func(ctx context.Context) error {
			err := first.inject(ctx)
			if !errors.Is(err, ErrNotFired) {
				return err
			}
			return errors.Join(s.failpoint(ctx, http.MethodDelete, first.Dies, ""), second.inject(ctx))
		},
		heal: func(ctx context.Context) error { return errors.Join(first.heal(ctx), second.heal(ctx)) },
	}
}

// pauseRequest stops one request at an instruction, past its lease, while the replica goes on.
func (s *Scheduler) pauseRequest() *Run {
	replica, point := s.replica(), points[s.random.IntN(len(points))]
	r := &Run{
		Label: "pause a request of " + replica + " " + point, Hold: pastLease,
		victims: []string{replica}, traffic: true,
	}
	if point == afterAcquire {
		r.Excuses = []books.Rule{verify.LeaseKept} // nothing extends the lease yet
	}
	r.inject = func(ctx context.Context) error {
		if err := s.failpoint(ctx, http.MethodPost, replica, "/"+point+"?pause="+pastLease.String()); err != nil {
			return err
		}
		return until(ctx, func() bool { return s.failpoint(ctx, http.MethodGet, replica, "/"+point) != nil })
	}
	r.heal = func(ctx context.Context) error { return s.failpoint(ctx, http.MethodDelete, replica, "") }
	return r
}

// failpoint asks a replica about a point, or all; one that has fired or was not armed is an error.
func (s *Scheduler) failpoint(ctx context.Context, method, replica, point string) error {
	_, err := call(ctx, method, s.Stack.Ops(replica), "/failpoints"+point, "")
	return err
}

// until waits for a failpoint to fire.
func until(ctx context.Context, fired func() bool) error {
	return wait.For(ctx, fireTimeout, tick, func(context.Context) error {
		if !fired() {
			return ErrNotFired
		}
		return nil
	})
}

// lives asks the operations port, which is open as long as the process runs.
func (s *Scheduler) lives(ctx context.Context, replica string) bool {
	conn, err := (&net.Dialer{Timeout: callTimeout}).DialContext(ctx, "tcp", s.Stack.Ops(replica))
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}
