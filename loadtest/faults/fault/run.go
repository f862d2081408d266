package fault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/loadtest/books"
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
	Stack *stack.Stack
	Ops   map[string]string // operations ports of the replicas, host:port
	Has   []Need
	Base  string // program of the earlier release that both replicas run at first; empty: there is none
	// Crowd and Storm have many clients order at once, under this name, until ctx ends, and return
	// how many requests they sent. Those of a storm repeat theirs without a pause.
	Crowd, Storm func(ctx context.Context, name string, size int) (sent int)
	// Pay has many clients order and pay with a slow card at one replica, until ctx ends, and
	// returns how many requests they sent.
	Pay func(ctx context.Context, name, replica string, size int) (sent int)
	// PayQuickly has as many clients do so at one replica with a card that is charged at once.
	PayQuickly func(ctx context.Context, name, replica string, size int) (sent int)
	// LeaveUnfinished has many clients send half of a request to nginx and wait, until ctx ends. It
	// returns how many did.
	LeaveUnfinished func(ctx context.Context, size int) (sent int)
	// Flood has many clients of one account order without a pause, past nginx, until ctx ends, and
	// returns how many requests they sent. Knock has strangers send requests with unknown API keys,
	// and returns how many were refused.
	Flood func(ctx context.Context, name string, size int) (sent int)
	Knock func(ctx context.Context, size int) (refused int)
	// OpenSale offers a few units of a product. Sell has many buyers order one of them at once, and
	// returns how many were told whether they got it.
	OpenSale func(ctx context.Context, name string) error
	Sell     func(ctx context.Context, name string, buyers int) (told int)
	// Restock has n products and customers change twice: through nginx, half of them without a
	// key, and then through the replica that is not broken. It calls ready when the first changes
	// are sent, and returns how many of those with a key took longer than patience.
	Restock func(ctx context.Context, broken string, n int, patience time.Duration, ready func()) (passedOn int)
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
	// Counts says that Hits is set: how many answers, events or requests the run met, by Heal.
	Counts bool
	Hits   int
	// Promotion is how long Sentinel took to detect the failure and to promote the other server;
	// set by Inject.
	Promotion time.Duration

	prepare func(context.Context) error // nil: nothing to wait for
	unready bool                        // prepare failed
	inject  func(context.Context) error
	heal    func(context.Context) error
	rank    int      // lower ones are healed first: a replica needs its stores
	victims []string // services that another run must leave alone
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

// Rank orders the healing of several runs.
func (r *Run) Rank() int { return r.rank }

// excuse adds promises to those that the kind excuses, for this run alone.
func (r *Run) excuse(rules ...books.Rule) { r.Excuses = slices.Concat(r.Excuses, rules) }

func wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// do is a command of the stack's switchboard.
func (s *Scheduler) do(verb string, args ...string) func(context.Context) error {
	return func(ctx context.Context) error { return s.doNow(ctx, verb, args...) }
}

// doNow applies a command. PostgreSQL is the server that takes writes, whichever that is by then.
func (s *Scheduler) doNow(ctx context.Context, verb string, args ...string) error {
	st := s.target.Stack
	args = slices.Clone(args)
	for i, arg := range args {
		if arg == stack.Postgres {
			args[i] = st.Primary()
		}
	}
	return st.Do(ctx, verb, args...)
}

// onBoth is a command on both replicas' connections to a service.
func (s *Scheduler) onBoth(verb, service string, args ...string) func(context.Context) error {
	return func(ctx context.Context) (err error) {
		for _, replica := range stack.Replicas {
			command := append([]string{replica, service}, args...)
			err = errors.Join(err, s.doNow(ctx, verb, command...))
		}
		return err
	}
}

func nothing(context.Context) error { return nil }
