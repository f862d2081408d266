// Package switchboard breaks a stack on purpose, and mends it: kill, pause, stop, flush, partition.
package switchboard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/oncepay/oncepay/internal/stack/deployment"
	"github.com/oncepay/oncepay/internal/stack/faultproxy"
	"github.com/oncepay/oncepay/internal/stack/topology"
)

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

// Board is the switchboard of a stack that is up.
type Board struct {
	*deployment.Deployment
	Driver
}

func (b Board) faults() faultproxy.Faults { return faultproxy.Faults{Control: b.Addr(topology.Proxy)} }

// verb is what can be done to a stack.
type verb struct {
	name  string
	usage string
	// run does it; args has as many elements as usage has words.
	run func(b Board, ctx context.Context, args []string) error
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
	{"partition", "SERVICE SERVICE", Board.partition, nil},
	{"heal", "SERVICE SERVICE", Board.heal, nil},
	{"slow", "SERVICE SERVICE DELAY", Board.slow, nil},
	{"cut", "SERVICE SERVICE BYTES", Board.cut, nil},
	{"crash", "SERVICE", Board.crash, topology.PostgresPair},
	{"promote", "postgres", Board.promote, []string{topology.Postgres}},
	{"follow", "postgres", Board.follow, []string{topology.Postgres}},
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

// ErrNativeOnly refuses what the compose driver cannot do.
var ErrNativeOnly = errors.New("only the native driver can do that")
