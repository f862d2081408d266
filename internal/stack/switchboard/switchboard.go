// Package switchboard breaks a stack on purpose, and mends it: kill, pause, stop, flush, partition.
package switchboard

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/stack/deployment"
	"github.com/oncepay/oncepay/internal/stack/faultproxy"
	"github.com/oncepay/oncepay/internal/stack/sentinel"
	"github.com/oncepay/oncepay/internal/stack/topology"
	"github.com/oncepay/oncepay/internal/wait"
)

// startTimeout is how long `start` waits for a replica to be ready: one whose stores were broken on
// purpose never will be.
const startTimeout = 10 * time.Second

// ErrNativeOnly refuses what the compose driver cannot do.
var ErrNativeOnly = errors.New("only the native driver can do that")

// Driver changes single services. Doing what is done already is no error.
type Driver interface {
	// Start, Stop and Kill change whether a service runs. Stop lets it end in order, Kill doesn't.
	Start(ctx context.Context, service string) error
	Stop(ctx context.Context, service string) error
	Kill(ctx context.Context, service string) error
	Pause(ctx context.Context, service string) error
	Resume(ctx context.Context, service string) error
	// Conditions tells of every service whether it runs.
	Conditions(ctx context.Context) (map[string]deployment.Condition, error)
}

// nativeDriver is what the native driver can do in addition.
type nativeDriver interface {
	Crash(ctx context.Context, service string) error
	Promote(ctx context.Context) error
	Follow(ctx context.Context) error
}

// Board is the switchboard of a stack that is up.
type Board struct {
	*deployment.Deployment
	Driver
}

// action does a verb; args has as many elements as the verb's usage has words.
type action func(b Board, ctx context.Context, args []string) error

// verb is what can be done to a stack.
type verb struct {
	name, usage string
	run         action
	// on are the services that the first argument may name; nil: args are something else.
	on []string
}

// stoppable are all services but the proxy, which is the switchboard's own; crashable are those of
// a single process, which SIGKILL meets as a whole.
var (
	crashable = append([]string{topology.API1, topology.API2, topology.PSP, topology.Mail, topology.Redis}, topology.SentinelServices...)
	pausable  = slices.Concat(crashable, topology.PostgresPair)
	stoppable = slices.Concat(pausable, []string{topology.Nginx})
)

var verbs = []verb{
	{"kill", "SERVICE", onService(Driver.Kill), crashable},
	{"pause", "SERVICE", onService(Driver.Pause), pausable},
	{"resume", "SERVICE", onService(Driver.Resume), pausable},
	{"stop", "SERVICE", onService(Driver.Stop), stoppable},
	{"start", "SERVICE", Board.start, stoppable},
	{"restart", "SERVICE", Board.restart, stoppable},
	{"flush", "redis", Board.flush, []string{topology.Redis}},
	{"partition", "SERVICE SERVICE", onEdge(faultproxy.Faults.Partition, sentinel.CutReplication), nil},
	{"heal", "SERVICE SERVICE", onEdge(faultproxy.Faults.Heal, sentinel.HealReplication), nil},
	{"slow", "SERVICE SERVICE DELAY", onEdgeWith(time.ParseDuration, faultproxy.Faults.Slow), nil},
	{"cut", "SERVICE SERVICE BYTES", onEdgeWith(strconv.Atoi, faultproxy.Faults.Cut), nil},
	{"crash", "SERVICE", onNative(nativeDriver.Crash), topology.PostgresPair},
	{"promote", "postgres", onNative(func(d nativeDriver, ctx context.Context, _ string) error { return d.Promote(ctx) }), []string{topology.Postgres}},
	{"follow", "postgres", onNative(func(d nativeDriver, ctx context.Context, _ string) error { return d.Follow(ctx) }), []string{topology.Postgres}},
}

// Command is a verb with its arguments, such as `partition api-1 redis`.
type Command struct {
	verb verb
	args []string
}

func (c Command) String() string { return c.verb.name + " " + strings.Join(c.args, " ") }

// Parse returns the command, or an error that tells how to call it.
func Parse(name string, args ...string) (Command, error) {
	i := slices.IndexFunc(verbs, func(v verb) bool { return v.name == name })
	if i < 0 {
		return Command{}, fmt.Errorf("unknown command %q (stack help shows all)", name)
	}
	v := verbs[i]
	if len(args) != len(strings.Fields(v.usage)) {
		return Command{}, fmt.Errorf("usage: stack %s %s", v.name, v.usage)
	}
	if v.on != nil && !slices.Contains(v.on, args[0]) {
		return Command{}, fmt.Errorf("%s works on %v, not on %q", v.name, v.on, args[0])
	}
	return Command{v, args}, nil
}

// Do applies a command and returns when it has taken effect.
func (b Board) Do(ctx context.Context, c Command) error {
	if c.verb.on != nil && !slices.Contains(b.Services(), c.args[0]) {
		return fmt.Errorf("this stack has no %s: `stack up` takes --redis sentinel and --postgres standby", c.args[0])
	}
	if err := c.verb.run(b, ctx, c.args); err != nil {
		return fmt.Errorf("%s: %w", c, err)
	}
	return nil
}

func onService(do func(Driver, context.Context, string) error) action {
	return func(b Board, ctx context.Context, args []string) error {
		err := do(b.Driver, ctx, args[0])
		if errors.Is(err, os.ErrProcessDone) {
			return errors.New("it is not running")
		}
		return err
	}
}

func onNative(do func(nativeDriver, context.Context, string) error) action {
	return func(b Board, ctx context.Context, args []string) error {
		driver, ok := b.Driver.(nativeDriver)
		if !ok {
			return ErrNativeOnly
		}
		return do(driver, ctx, args[0])
	}
}

// onEdge does something to a connection; the one between the two servers of a replicated Redis has
// its own way.
func onEdge(do func(faultproxy.Faults, topology.Edge) error, toReplication func(context.Context, *topology.Topology) error) action {
	return func(b Board, ctx context.Context, args []string) error {
		if b.IsReplicated() && topology.Replication.Joins(args[0], args[1]) {
			return toReplication(ctx, b.Topology)
		}
		return b.eachEdge(args, do)
	}
}

// onEdgeWith does something to a connection with a parameter, its third argument.
func onEdgeWith[T any](parse func(string) (T, error), do func(faultproxy.Faults, topology.Edge, T) error) action {
	return func(b Board, _ context.Context, args []string) error {
		parameter, err := parse(args[2])
		if err != nil {
			return err
		}
		return b.eachEdge(args, func(f faultproxy.Faults, e topology.Edge) error { return do(f, e, parameter) })
	}
}

func (b Board) eachEdge(args []string, do func(faultproxy.Faults, topology.Edge) error) error {
	edges, err := b.FindEdges(args[0], args[1])
	for _, e := range edges {
		err = errors.Join(err, do(faultproxy.Of(b.Topology), e))
	}
	return err
}

// start waits until the service is ready. For a replica that is as far as the faults in force let
// it: one that runs without its stores, or a copy of Redis that is cut off, is no error.
func (b Board) start(ctx context.Context, args []string) error {
	name := args[0]
	if err := b.Start(ctx, name); err != nil {
		return err
	}
	notReady := wait.For(ctx, startTimeout, localserver.PollInterval, func(ctx context.Context) error { return b.Probe(ctx, name) })
	if notReady == nil || ctx.Err() != nil {
		return notReady
	}
	conditions, err := b.Conditions(ctx)
	if err == nil && conditions[name].State == deployment.Running && (slices.Contains(topology.Replicas, name) || b.IsReplicated()) {
		b.Printf("%s runs, but is %v\n", name, notReady)
		return nil
	}
	return errors.Join(fmt.Errorf("%w; see: stack logs %s", notReady, name), err)
}

func (b Board) restart(ctx context.Context, args []string) error {
	if err := b.Stop(ctx, args[0]); err != nil {
		return err
	}
	return b.start(ctx, args)
}

// flush empties Redis, as if it had lost everything.
func (b Board) flush(ctx context.Context, _ []string) error {
	master, err := sentinel.Master(ctx, b.Topology)
	if err == nil {
		_, err = localserver.AskRedis(ctx, master, "FLUSHALL", "ASYNC") // the memory is freed later
	}
	return err
}
