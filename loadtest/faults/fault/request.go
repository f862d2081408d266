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

var requestKinds = append(deaths(), Kind{
	Name: "request pause", Victim: Replicas, Excuses: []books.Rule{verify.HangUpServed},
	draw: (*Scheduler).pauseRequest,
})

// deaths are one kind for each point, so that each is drawn in every round.
func deaths() []Kind {
	var kinds []Kind
	for _, point := range slices.Concat(points, []string{afterPublish}) {
		k := Kind{
			Name: "kill " + point, Victim: Replicas, Excuses: interrupted,
			draw: func(s *Scheduler) *Run { return s.dieAt(point) },
		}
		if point == afterPublish {
			k.Breaks, k.draw = []Damage{RelayRepeats}, (*Scheduler).killRelay
		}
		kinds = append(kinds, k)
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
