package fault

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/internal/wait"
	"github.com/oncepay/oncepay/loadtest/faults/workload"
)

// Lease is the lease of the campaign's replicas: short, because pauses have to outlast it.
const Lease = 3 * time.Second

const (
	// shortHold and longHold bound how long a fault lasts.
	shortHold, longHold = time.Second, 4 * time.Second
	// pastLease is how long a process is paused so that other attempts take over its keys.
	pastLease = Lease + 2*time.Second
)

// Target is the stack that is broken.
type Target struct {
	Stack   *stack.Stack
	Has     []Need
	Base    string            // program of the earlier release that both replicas run at first; empty: there is none
	Clients *workload.Clients // that some kinds have do more
}

func (t Target) has(need Need) bool { return need == "" || slices.Contains(t.Has, need) }

// A Run is one execution of a kind. Inject and Heal follow each other; a run is used once.
type Run struct {
	Kind
	Label string // what this run does; the kind's name by default
	Hold  time.Duration
	Dies  string // the replica whose process ends when this is injected; empty: none or several
	// Pauses is the replica that is paused as a whole; empty: none.
	Pauses string
	Died   time.Time // when it did, or a moment before; set by Inject
	Rank   int       // lower ones are healed first: a replica needs its stores
	// Counts says that Hits is set: how many answers, events or requests the run met, by Heal.
	Counts bool
	Hits   int
	// Promotion is how long Sentinel took to detect the failure and to promote the other server;
	// set by Inject.
	Promotion time.Duration

	prepare step // nil: nothing to wait for
	unready bool // prepare failed
	inject  step
	heal    step
	victims []string // services that another run must leave alone
	master  string   // the Redis that was master; set by prepare
	// gathered is the name of the clients that a run gathers, which their keys have.
	gathered string
	// traffic says that it needs requests that reach their replicas, so it is injected first.
	traffic bool
}

// ErrNotFired says that nothing was broken: no request reached an armed failpoint, or the victim
// was not ready for the fault.
var ErrNotFired = errors.New("no request reached it in time")

// Prepare waits until the fault can be injected. When that takes too long, Inject returns
// ErrNotFired.
func (r *Run) Prepare(ctx context.Context) {
	r.unready = r.prepare != nil && r.prepare(ctx) != nil
}

// Inject breaks the victim.
func (r *Run) Inject(ctx context.Context) error {
	if r.unready {
		return wrap("inject "+r.Label, ErrNotFired)
	}
	return wrap("inject "+r.Label, r.inject(ctx))
}

// Heal repairs it. It may be called again.
func (r *Run) Heal(ctx context.Context) error {
	if r.unready {
		return nil
	}
	return wrap("heal "+r.Label, r.heal(ctx))
}

func wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// lasting has runs last for so long.
func lasting(hold time.Duration, draw draw) draw {
	return func(s *Scheduler) *Run {
		r := draw(s)
		r.Hold = hold
		return r
	}
}

// step is a part of injecting or healing.
type step = func(context.Context) error

// steps are taken one after the other, until one fails.
func steps(all ...step) step {
	return func(ctx context.Context) error {
		for _, do := range all {
			if err := do(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}

// pause is a step that does nothing for so long.
func pause(d time.Duration) step {
	return func(ctx context.Context) error { return wait.Pause(ctx, d) }
}

// do is a command of the stack's switchboard. PostgreSQL is the server that takes writes, whichever
// that is by then.
func (s *Scheduler) do(verb string, args ...string) step {
	return func(ctx context.Context) error {
		now := slices.Clone(args)
		if i := slices.Index(now, stack.Postgres); i >= 0 {
			now[i] = s.Stack.Primary()
		}
		return s.Stack.Do(ctx, verb, now...)
	}
}

// onBoth is a command on both replicas, or on their connections to a service.
func (s *Scheduler) onBoth(verb string, service ...string) step {
	return func(ctx context.Context) (err error) {
		for _, replica := range stack.Replicas {
			err = errors.Join(err, s.do(verb, slices.Concat([]string{replica}, service)...)(ctx))
		}
		return err
	}
}

func nothing(context.Context) error { return nil }

// callTimeout bounds a call to a service's own switches.
const callTimeout = 5 * time.Second

// call sends a request to a service's own switches: failpoints, or troubles that it makes itself.
// Its connection does not outlive it.
func call(ctx context.Context, method, addr, path, body string) (answer []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, "http://"+addr+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode/100 != 2 {
		return nil, fmt.Errorf("%s %s of %s: answered %s", method, path, addr, response.Status)
	}
	return io.ReadAll(response.Body)
}
