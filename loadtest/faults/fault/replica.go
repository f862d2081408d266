package fault

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/internal/wait"
	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
	"github.com/oncepay/oncepay/loadtest/shop"
)

// interrupted are the promises that the end or the pause of a replica suspends: nginx passes its
// requests on, so that a client meets its own first copy, and requests end with their process.
var interrupted = []books.Rule{verify.WaitedFor, verify.HangUpServed, verify.ReplicaAvailable}

// paused are those that its pause suspends.
var paused = slices.Concat([]books.Rule{verify.LeaseKept}, interrupted)

var replicaKinds = []Kind{
	{Name: "replica kill", Excuses: interrupted, command: "kill api-1..2"},
	{Name: "both replicas kill", Excuses: interrupted, command: "kill api-1; kill api-2"}, // none is left to take over
	{
		Name: "nginx passes on while a replica dies", Excuses: interrupted, Counts: true, traffic: true,
		victims: stack.Replicas, command: "kill api-1..2", draw: (*Scheduler).dieUnderLoad,
	},
	{Name: "replica pause", Excuses: paused, Hold: pastLease, command: "pause api-1..2"},
	{Name: "replica pause past the nginx timeout", Excuses: paused, Hold: pastNginx, command: "pause api-1..2"},
	{
		Name: "replica pause while products change", Excuses: paused, Hold: pastNginx, Counts: true,
		victims: []string{stack.API1, stack.API2, stack.Postgres, stack.Nginx},
		command: "pause api-1..2", draw: restocking(underWay),
	},
}

// pastNginx is longer than nginx waits for the answer to an order before it passes it on: what was
// refused by the other replica still waits at this one.
const pastNginx = 18 * time.Second

const (
	// slowed is the delay of a replica's database, so that many requests are running when it dies.
	slowed = 300 * time.Millisecond
	// arriving is the time for these requests to arrive.
	arriving = 2 * slowed
	// restocked is how many products change at once when a replica is paused: enough that some wait
	// for the processor, between two instructions, underWay after they began.
	restocked = 200
	underWay  = 30 * time.Millisecond
	// leftBehind is how many changes wait in the socket of a paused replica without their clients.
	leftBehind = 10
)

// restocking has products change while a replica dies or pauses, some without a key. It counts what
// nginx passes on: each such request has reached two replicas.
func restocking(underWay time.Duration) draw {
	return func(s *Scheduler, r *Run) {
		breaks, heal, before, answered := r.Inject, r.Heal, 0, func() {}
		var left sync.WaitGroup
		r.Inject = func(ctx context.Context) (err error) {
			if before, err = s.Stack.PassedOn(); err != nil {
				return err
			}
			answered = s.Clients.Restock(ctx, cmp.Or(r.Dies, r.Pauses), restocked)
			err = steps(pause(underWay), breaks)(ctx)
			if err == nil && r.Pauses != "" {
				left.Go(func() { s.Clients.LeaveChanges(ctx, r.Pauses, leftBehind) })
			}
			return err
		}
		r.Heal = func(ctx context.Context) error {
			answered()
			left.Wait()
			after, err := s.Stack.PassedOn()
			r.Hits = after - before
			return errors.Join(err, heal(ctx))
		}
	}
}

// dieUnderLoad kills a replica that runs many requests.
func (s *Scheduler) dieUnderLoad(r *Run) {
	restocking(arriving)(s, r)
	kill, start := r.Inject, r.Heal
	r.Inject = steps(s.do("slow", r.Dies, stack.Postgres, slowed.String()), kill)
	r.Heal = all(s.do("heal", r.Dies, stack.Postgres), start)
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
	Kind{
		Name: "kill " + afterPublish, Breaks: []Damage{RelayRepeats}, Excuses: interrupted, victims: stack.Replicas,
		// The replica whose relay holds the lease dies.
		draw: func(s *Scheduler, r *Run) { s.dieAt(r, afterPublish, stack.Replicas...) },
	},
	Kind{Name: "request pause", Excuses: []books.Rule{verify.HangUpServed}, Hold: pastLease, draw: (*Scheduler).pauseRequest},
), func(k *Kind) { k.traffic = true })

// deaths are one kind for each point, so that each is drawn in every round.
func deaths() (kinds []Kind) {
	for _, point := range points {
		kinds = append(kinds, Kind{Name: "kill " + point, Excuses: interrupted, draw: func(s *Scheduler, r *Run) {
			r.Dies = s.replica()
			r.Label, r.victims = "kill "+r.Dies+" "+point, []string{r.Dies}
			s.dieAt(r, point, r.Dies)
		}})
	}
	return kinds
}

// dieAt kills one of these replicas at an instruction.
func (s *Scheduler) dieAt(r *Run, point string, replicas ...string) {
	skip := s.random.IntN(20)
	if point == "before-provider" || point == "after-provider" {
		skip = s.random.IntN(5) // rarer
	}
	dead := func(ctx context.Context) bool {
		return slices.ContainsFunc(replicas, func(replica string) bool { return !s.lives(ctx, replica) })
	}
	disarm := func(ctx context.Context) {
		for _, replica := range replicas {
			_ = s.failpoint(ctx, http.MethodDelete, replica, "") // a dead replica has none armed
		}
	}
	r.Inject = func(ctx context.Context) error {
		defer disarm(ctx)
		for _, replica := range replicas {
			err := s.failpoint(ctx, http.MethodPost, replica, fmt.Sprintf("/%s?skip=%d", point, skip))
			if err != nil && s.lives(ctx, replica) { // otherwise it has died there before it could answer
				return err
			}
		}
		r.Died = time.Now()
		return until(ctx, func() bool {
			looked := time.Now()
			if dead(ctx) {
				return true
			}
			r.Died = looked
			return false
		})
	}
	var starts []step
	for _, replica := range replicas {
		starts = append(starts, s.do("start", replica))
	}
	r.Heal = all(starts...)
}

// pauseRequest stops one request at an instruction, past its lease, while the replica goes on.
func (s *Scheduler) pauseRequest(r *Run) {
	replica, point := s.replica(), oneOf(s, points...)
	r.Label, r.victims = "pause a request of "+replica+" "+point, []string{replica}
	if point == afterAcquire {
		r.Excuses = append(slices.Clone(r.Excuses), verify.LeaseKept) // nothing extends the lease yet
	}
	r.Inject = func(ctx context.Context) error {
		if err := s.failpoint(ctx, http.MethodPost, replica, "/"+point+"?pause="+pastLease.String()); err != nil {
			return err
		}
		return until(ctx, func() bool { return s.failpoint(ctx, http.MethodGet, replica, "/"+point) != nil })
	}
	r.Heal = func(ctx context.Context) error { return s.failpoint(ctx, http.MethodDelete, replica, "") }
}

// failpoint asks a replica about a point, or all; one that has fired or was not armed is an error.
func (s *Scheduler) failpoint(ctx context.Context, method, replica, point string) error {
	return shop.Ask(ctx, method, "http://"+s.Stack.Ops(replica)+"/failpoints"+point, "", nil)
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
	conn, err := (&net.Dialer{Timeout: fireTimeout}).DialContext(ctx, "tcp", s.Stack.Ops(replica))
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}

// wayAndBack is a rolling update and its rollback: each replica is replaced twice.
const wayAndBack = 4

var upgradeKinds = []Kind{{
	Name: "replica of the other release", Needs: EarlierRelease, Weight: wayAndBack,
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
	r.Inject = steps(s.migrate, func(ctx context.Context) error {
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
