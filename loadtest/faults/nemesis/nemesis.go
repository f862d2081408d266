// Package nemesis hurts a running stack in the ways that production does, one or more at a time, on a schedule that follows from a
// seed, and heals it again. Each file has the faults of one victim; the catalogue lists them all.
package nemesis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oncepay/oncepay/internal/stack"
)

// Lease is what the campaign's replicas are started with: short, because pauses have to outlast it.
const Lease = 3 * time.Second

const (
	// shortest and longest hold of a fault.
	shortHold, longHold = time.Second, 4 * time.Second
	// pastLease is how long a process is paused so that its keys are taken over.
	pastLease = Lease + 2*time.Second
)

// Target is what is hurt.
type Target struct {
	Stack    *stack.Stack
	Ops      map[string]string // operations ports of the replicas, host:port
	Sentinel bool              // looks after Redis
}

// A Fault is one injury. Inject and Heal follow each other; a fault is used once.
type Fault struct {
	Name   string
	Kind   string // the nemesis: faults of a kind count together
	Hold   time.Duration
	Dies   string    // the replica whose process ends when this is injected; empty: none or several
	Died   time.Time // when it did, or a moment before; set by Inject
	Loses  bool      // Redis loses data
	Counts bool      // it can tell how often it met something, in Hits
	Hits   int       // set by Heal
	// Appointed is how long Sentinel took to find the master gone and to appoint the other server; set by Inject.
	Appointed time.Duration
	prepare   func(context.Context) error // nil: nothing to wait for
	unready   bool                        // prepare failed
	inject    func(context.Context) error
	heal      func(context.Context) error
	rank      int      // lower ones are healed first: a replica needs its stores
	victims   []string // services that can't take a second injury
	needs     bool     // requests that get somewhere, or it won't happen: it goes first
}

// ErrNotFired says that nothing was hurt: no request came by an armed failpoint, or what was to be hurt was not well before.
var ErrNotFired = errors.New("no request reached it in time")

// Prepare waits, without hurting, until the fault can be injected. When that takes too long, Inject won't.
func (f *Fault) Prepare(ctx context.Context) {
	f.unready = f.prepare != nil && f.prepare(ctx) != nil
}

// Inject hurts.
func (f *Fault) Inject(ctx context.Context) error {
	if f.unready {
		return wrap("inject "+f.Name, ErrNotFired)
	}
	return wrap("inject "+f.Name, f.inject(ctx))
}

// Heal ends it. It may be called again.
func (f *Fault) Heal(ctx context.Context) error {
	if f.unready {
		return nil
	}
	return wrap("heal "+f.Name, f.heal(ctx))
}

// Rank orders the healing of several faults.
func (f *Fault) Rank() int { return f.rank }

func wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// do is a verb of the stack's switchboard.
func (s *Scheduler) do(verb string, args ...string) func(context.Context) error {
	return func(ctx context.Context) error { return s.target.Stack.Do(ctx, verb, args...) }
}

func nothing(context.Context) error { return nil }
