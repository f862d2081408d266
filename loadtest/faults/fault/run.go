package fault

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
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
	Stack           *stack.Stack
	Redis, Postgres string            // as in its options
	Base            string            // program of the earlier release that both replicas run at first; empty: there is none
	Clients         *workload.Clients // that some kinds have do more
}

// has says whether the stack meets a need.
func (t Target) has(need Need) bool {
	return map[Need]bool{
		"": true, SingleRedis: t.Redis != stack.Sentinel, Sentinel: t.Redis == stack.Sentinel,
		SyncStandby: t.Postgres == stack.SyncStandby, EarlierRelease: t.Base != "",
	}[need]
}

// A Run is one execution of a kind. Inject and Heal follow each other; a run is used once.
type Run struct {
	Kind
	Label  string    // what this run does; the kind's name by default
	Dies   string    // the replica whose process ends when this is injected; empty: none or several
	Pauses string    // the replica that is paused as a whole; empty: none
	Died   time.Time // when it did, or a moment before; set by Inject
	Rank   int       // lower ones are healed first: a replica needs its stores
	Hits   int       // if the kind Counts
	// Promotion is how long Sentinel took to detect the failure and to promote the other server;
	// set by Inject.
	Promotion time.Duration

	Inject step // breaks the victim
	Heal   step // repairs it, unless nothing is left to repair; may be called again

	prepare step // nil: nothing to wait for
}

// ErrNotFired says that nothing was broken: no request reached an armed failpoint, or the victim
// was not ready for the fault.
var ErrNotFired = errors.New("no request reached it in time")

// Prepare waits until the fault can be injected. When that takes too long, Inject returns
// ErrNotFired.
func (r *Run) Prepare(ctx context.Context) {
	if r.prepare != nil && r.prepare(ctx) != nil {
		r.Inject, r.Heal = func(context.Context) error { return ErrNotFired }, steps()
	}
}

// step is a part of injecting or healing.
type step = func(context.Context) error

// steps are taken one after the other, until one fails.
func steps(parts ...step) step {
	return func(ctx context.Context) error {
		for _, do := range parts {
			if err := do(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}

// all takes every step, whatever fails.
func all(parts ...step) step {
	return func(ctx context.Context) (err error) {
		for _, do := range parts {
			err = errors.Join(err, do(ctx))
		}
		return err
	}
}

// pause is a step that does nothing for so long.
func pause(d time.Duration) step {
	return func(ctx context.Context) error { return wait.Pause(ctx, d) }
}

// do is a command of the stack's switchboard. It names some servers by what they are by then:
// PostgreSQL is the one that takes writes.
func (s *Scheduler) do(verb string, args ...string) step {
	return func(ctx context.Context) error {
		roles := map[string]string{
			stack.Postgres: s.Stack.Primary(), "standby": s.Stack.StandbyServer(), "master": s.master, "copy": s.copy,
		}
		now := slices.Clone(args)
		for i, name := range now {
			now[i] = cmp.Or(roles[name], name)
		}
		return s.Stack.Do(ctx, verb, now...)
	}
}

// undo has the verb that takes another one back.
var undo = map[string]string{"kill": "start", "crash": "start", "pause": "resume", "partition": "heal", "slow": "heal", "cut": "heal"}

// numbers is a range in a command.
var numbers = regexp.MustCompile(`\d+\.\.\d+`)

// command has a run take commands, and take them back.
func (s *Scheduler) command(r *Run, text string) {
	text = numbers.ReplaceAllStringFunc(text, func(span string) string {
		var from, to int
		_, _ = fmt.Sscanf(span, "%d..%d", &from, &to)
		return strconv.Itoa(from + s.random.IntN(to-from+1))
	})
	r.Label += ": " + text
	var breaks, heals []step
	commands := strings.Split(text, "; ")
	for _, command := range commands {
		words := strings.Fields(command)
		back, service := undo[words[0]], words[1]
		breaks = append(breaks, s.do(words[0], words[1:]...))
		if back == "heal" { // of a connection, which is nobody's alone
			heals = append(heals, s.do(back, words[1:3]...))
			continue
		}
		heals = append(heals, s.do(back, service))
		if !slices.Contains(r.victims, service) {
			r.victims = append(r.victims, service)
		}
		switch alone := len(commands) == 1 && slices.Contains(stack.Replicas, service); {
		case alone && words[0] == "kill":
			r.Dies = service
		case alone && words[0] == "pause":
			r.Pauses = service
		}
	}
	r.Inject = func(ctx context.Context) error {
		r.Died = time.Now()
		return steps(breaks...)(ctx)
	}
	r.Heal = all(heals...)
}
