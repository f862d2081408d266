package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/wait"
)

// startTimeout is how long `start` waits for a replica to be ready: one whose stores were broken on
// purpose never will be.
const startTimeout = 10 * time.Second

// Fault is a verb of the switchboard.
type Fault struct {
	Verb  string
	Usage string
	// run does it; args has as many elements as Usage has words.
	run func(ctx context.Context, s *Stack, args []string) error
	// on are the services that the first argument may name; nil: args are something else.
	on []string
}

// stoppable are all services but the proxy, which is the switchboard's own; crashable are those of
// a single process, which SIGKILL meets as a whole.
var (
	crashable = append([]string{API1, API2, PSP, Redis}, sentinelServices...)
	pausable  = slices.Concat(crashable, []string{Postgres, PostgresStandby})
	stoppable = slices.Concat(pausable, []string{Nginx})
)

// Faults are the verbs of the switchboard.
var Faults = []Fault{
	{"kill", "SERVICE", onService((driver).kill), crashable},
	{"pause", "SERVICE", onService((driver).pause), pausable},
	{"resume", "SERVICE", onService((driver).resume), pausable},
	{"stop", "SERVICE", onService((driver).stop), stoppable},
	{"start", "SERVICE", startService, stoppable},
	{"restart", "SERVICE", restartService, stoppable},
	{"flush", "redis", flush, []string{Redis}},
	{"partition", "SERVICE SERVICE", onEdge(faults.partition, (*Stack).cutReplication), nil},
	{"heal", "SERVICE SERVICE", onEdge(faults.heal, (*Stack).healReplication), nil},
	{"slow", "SERVICE SERVICE DELAY", slow, nil},
	{"cut", "SERVICE SERVICE BYTES", cut, nil},
	{"crash", "postgres", crash, []string{Postgres}},
	{"promote", "postgres", promote, []string{Postgres}},
}

// Do applies a verb of the switchboard, such as Do(ctx, "partition", "api-1", "redis"), and returns
// when it has taken effect.
func (s *Stack) Do(ctx context.Context, verb string, args ...string) error {
	i := slices.IndexFunc(Faults, func(f Fault) bool { return f.Verb == verb })
	if i < 0 {
		return fmt.Errorf("unknown command %q", verb)
	}
	f := Faults[i]
	if len(args) != len(strings.Fields(f.Usage)) {
		return fmt.Errorf("usage: stack %s %s", f.Verb, f.Usage)
	}
	if f.on != nil && !slices.Contains(f.on, args[0]) {
		return fmt.Errorf("%s works on %v, not on %q", verb, f.on, args[0])
	}
	begun := time.Now()
	return s.onStack(ctx, func(ctx context.Context) error {
		if f.on != nil && !slices.Contains(s.services(), args[0]) {
			return fmt.Errorf("this stack has no %s: `stack up` takes --redis sentinel and --postgres standby", args[0])
		}
		if err := f.run(ctx, s, args); err != nil {
			return fmt.Errorf("%s %s: %w", verb, strings.Join(args, " "), err)
		}
		s.printf("%s %s: done in %.1f s\n", verb, strings.Join(args, " "), time.Since(begun).Seconds())
		return nil
	})
}

func (s *Stack) faults() faults { return faults{s.addr(Proxy)} }

func onService(do func(driver, context.Context, string) error) func(context.Context, *Stack, []string) error {
	return func(ctx context.Context, s *Stack, args []string) error {
		err := do(s.driver, ctx, args[0])
		if errors.Is(err, os.ErrProcessDone) {
			return errors.New("it is not running")
		}
		return err
	}
}

// startService waits until the service is ready. For a replica that is as far as the faults in
// force let it: one that runs without its stores, or a copy of Redis that is cut off, is no error.
func startService(ctx context.Context, s *Stack, args []string) error {
	name := args[0]
	if err := s.driver.start(ctx, name); err != nil {
		return err
	}
	notReady := wait.For(ctx, startTimeout, pollInterval, func(ctx context.Context) error { return s.probe(ctx, name) })
	if notReady == nil || ctx.Err() != nil {
		return notReady
	}
	conditions, err := s.driver.conditions(ctx)
	if err == nil && conditions[name].state == running && (slices.Contains(Replicas, name) || s.isReplicated()) {
		s.printf("%s runs, but is %v\n", name, notReady)
		return nil
	}
	return errors.Join(fmt.Errorf("%w; see: stack logs %s", notReady, name), err)
}

func restartService(ctx context.Context, s *Stack, args []string) error {
	if err := s.driver.stop(ctx, args[0]); err != nil {
		return err
	}
	return startService(ctx, s, args)
}

// flush empties Redis, as if it had lost everything.
func flush(ctx context.Context, s *Stack, _ []string) error {
	master, err := s.RedisMaster(ctx)
	if err != nil {
		return err
	}
	answer, err := localserver.AskRedis(ctx, master, "FLUSHALL")
	if err == nil && answer != "+OK" {
		err = errors.New(answer)
	}
	return err
}

// onEdge does something to a connection; the one between the two servers of a replicated Redis has
// its own way.
func onEdge(do func(faults, context.Context, edge) error, toReplication func(*Stack, context.Context) error,
) func(context.Context, *Stack, []string) error {
	return func(ctx context.Context, s *Stack, args []string) error {
		if s.isReplicated() && replication.joins(args[0], args[1]) {
			return toReplication(s, ctx)
		}
		e, err := s.findEdge(args[0], args[1])
		if err != nil {
			return err
		}
		return do(s.faults(), ctx, e)
	}
}

func slow(ctx context.Context, s *Stack, args []string) error {
	e, err := s.findEdge(args[0], args[1])
	if err != nil {
		return err
	}
	delay, err := time.ParseDuration(args[2])
	if err != nil {
		return err
	}
	return s.faults().slow(ctx, e, delay)
}

func cut(ctx context.Context, s *Stack, args []string) error {
	e, err := s.findEdge(args[0], args[1])
	if err != nil {
		return err
	}
	bytes, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	return s.faults().cut(ctx, e, bytes)
}

// crash is PostgreSQL's immediate shutdown: nothing is finished and nothing written, so the next
// start recovers from the log ("Shutting Down the Server" in its manual).
func crash(ctx context.Context, s *Stack, args []string) error {
	if _, ok := s.driver.(*native); !ok {
		return errors.New("only the native driver can do that")
	}
	return s.state.service(args[0]).Process.Stop(ctx, syscall.SIGQUIT, stopGrace)
}
