package switchboard

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/oncepay/oncepay/internal/localserver"
	"github.com/oncepay/oncepay/internal/stack/deployment"
	"github.com/oncepay/oncepay/internal/stack/sentinel"
	"github.com/oncepay/oncepay/internal/stack/topology"
	"github.com/oncepay/oncepay/internal/wait"
)

// startTimeout is how long `start` waits for a replica to be ready: one whose stores were broken on
// purpose never will be.
const startTimeout = 10 * time.Second

func onService(do func(Driver, context.Context, string) error) func(Board, context.Context, []string) error {
	return func(b Board, ctx context.Context, args []string) error {
		err := do(b.Driver, ctx, args[0])
		if errors.Is(err, os.ErrProcessDone) {
			return errors.New("it is not running")
		}
		return err
	}
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
	if err != nil {
		return err
	}
	answer, err := localserver.AskRedis(ctx, master, "FLUSHALL")
	if err == nil && answer != "+OK" {
		err = errors.New(answer)
	}
	return err
}

// crash ends PostgreSQL at once.
func (b Board) crash(ctx context.Context, args []string) error {
	driver, ok := b.Driver.(interface {
		Crash(ctx context.Context, service string) error
	})
	if !ok {
		return ErrNativeOnly
	}
	return driver.Crash(ctx, args[0])
}

// promote makes the standby the primary.
func (b Board) promote(ctx context.Context, _ []string) error {
	driver, ok := b.Driver.(interface {
		Promote(ctx context.Context) error
	})
	if !ok {
		return ErrNativeOnly
	}
	return driver.Promote(ctx)
}

// follow makes the former primary a standby.
func (b Board) follow(ctx context.Context, _ []string) error {
	driver, ok := b.Driver.(interface {
		Follow(ctx context.Context) error
	})
	if !ok {
		return ErrNativeOnly
	}
	return driver.Follow(ctx)
}
