package stack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/wait"
)

// startTimeout is how long `start` waits for a replica to be ready: one whose stores were broken on
// purpose never will be.
const startTimeout = 10 * time.Second

// errNativeOnly refuses what the compose driver cannot do.
var errNativeOnly = errors.New("only the native driver can do that")

// verb is what can be done to a stack: the switchboard breaks it on purpose, and mends it.
type verb struct {
	name, usage string
	// on are the services that the first argument may name; nil: it is a connection.
	on []string
	// run does it; args has as many elements as the usage has words.
	run func(s *Stack, ctx context.Context, verb string, args []string) error
}

// stoppable are all services but the proxy, which is the switchboard's own; crashable are those of
// a single process, which SIGKILL meets as a whole.
var (
	crashable = append([]string{API1, API2, PSP, Mail, PgBouncer, Redis, RedisReplica}, sentinels...)
	pausable  = slices.Concat(crashable, postgresPair)
	stoppable = slices.Concat(pausable, []string{Nginx})
)

var verbs = []verb{
	{"kill", "SERVICE", crashable, (*Stack).control},
	{"pause", "SERVICE", pausable, (*Stack).control},
	{"resume", "SERVICE", pausable, (*Stack).control},
	{"stop", "SERVICE", stoppable, (*Stack).control},
	{"start", "SERVICE", stoppable, (*Stack).start},
	{"restart", "SERVICE", stoppable, (*Stack).start},
	{"flush", "redis", []string{Redis}, (*Stack).flush},
	{"partition", "SERVICE SERVICE", nil, (*Stack).onEdges},
	{"heal", "SERVICE SERVICE", nil, (*Stack).onEdges},
	{"slow", "SERVICE SERVICE DELAY", nil, (*Stack).onEdges},
	{"cut", "SERVICE SERVICE BYTES", nil, (*Stack).onEdges},
	{"crash", "SERVICE", postgresPair, (*Stack).control},
	{"promote", "postgres", []string{Postgres}, (*Stack).control},
	{"follow", "postgres", []string{Postgres}, (*Stack).control},
}

// findVerb returns a verb that takes these arguments, or an error that tells how to call it.
func findVerb(name string, args ...string) (v verb, err error) {
	i := slices.IndexFunc(verbs, func(v verb) bool { return v.name == name })
	if i < 0 {
		return v, fmt.Errorf("unknown command %q (stack help shows all)", append([]string{name}, args...))
	}
	switch v = verbs[i]; {
	case len(args) != len(strings.Fields(v.usage)):
		return v, fmt.Errorf("usage: stack %s %s", v.name, v.usage)
	case v.on != nil && !slices.Contains(v.on, args[0]):
		return v, fmt.Errorf("%s works on %v, not on %q", v.name, v.on, args[0])
	}
	return v, nil
}

// Do applies a command of the switchboard, such as Do(ctx, "partition", "api-1", "redis"), and
// returns when it has taken effect.
func (s *Stack) Do(ctx context.Context, name string, args ...string) error {
	v, err := findVerb(name, args...)
	if err != nil {
		return err
	}
	return s.whileUp(ctx, func() error {
		if v.on != nil && !slices.Contains(s.Services(), args[0]) {
			return fmt.Errorf("this stack has no %s: `stack up` takes --redis sentinel and --postgres standby", args[0])
		}
		begun, command := time.Now(), name+" "+strings.Join(args, " ")
		if err := v.run(s, ctx, name, args); err != nil {
			return fmt.Errorf("%s: %w", command, err)
		}
		s.printf("%s: done in %.1f s\n", command, time.Since(begun).Seconds())
		return nil
	})
}

// control leaves it to the driver.
func (s *Stack) control(ctx context.Context, verb string, args []string) error {
	return s.driver.control(ctx, verb, args[0])
}

// onEdges breaks or heals a connection; the one between the two servers of a replicated Redis has
// its own way.
func (s *Stack) onEdges(ctx context.Context, verb string, args []string) error {
	parameter := strings.Join(args[2:], "")
	if s.IsReplicated() && replication.joins(args[0], args[1]) && parameter == "" {
		return s.setReplication(ctx, verb == "heal")
	}
	found, err := s.findEdges(args[0], args[1])
	for _, e := range found {
		proxy, failed := s.faults().Proxy(e.name())
		if failed == nil {
			failed = inflict(proxy, verb, parameter)
		}
		err = errors.Join(err, failed)
	}
	return err
}

// start starts or restarts a service, and waits until it is ready. For a replica that is as far as
// the faults in force let it: one that runs without its stores, or a copy of Redis that is cut off,
// is no error.
func (s *Stack) start(ctx context.Context, verb string, args []string) error {
	name := args[0]
	if verb == "restart" {
		if err := s.driver.control(ctx, "stop", name); err != nil {
			return err
		}
	}
	if err := s.driver.control(ctx, "start", name); err != nil {
		return err
	}
	err := wait.For(ctx, startTimeout, localserver.PollInterval, func(ctx context.Context) error {
		return s.probe(ctx, name)
	})
	if err == nil || ctx.Err() != nil {
		return err
	}
	conditions, _ := s.driver.conditions(ctx)
	if conditions[name].State == running && (slices.Contains(Replicas, name) || s.IsReplicated()) {
		s.printf("%s runs, but is not ready: %v\n", name, err)
		return nil
	}
	return fmt.Errorf("%w; see: stack logs %s", err, name)
}

// flush empties Redis, as if it had lost everything.
func (s *Stack) flush(ctx context.Context, _ string, _ []string) error {
	master, err := s.RedisMaster(ctx)
	if err == nil {
		_, err = localserver.AskRedis(ctx, master, "FLUSHALL", "ASYNC") // the memory is freed later
	}
	return err
}
