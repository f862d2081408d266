// Command faults is the proof of the guarantee: it brings up a stack of its own, has clients shop there while it kills, pauses, cuts
// off and fills up whatever can be, heals everything, and then compares every answer that a client saw with what the database, the
// provider and the event stream hold.
//
//	DURATION=2m CLIENTS=64 SEED=1 go run ./loadtest/faults
//
// See config for the variables. It ends with a non-zero status on any violation, and when the run proved nothing. What it does not
// cover: power cuts and lost fsyncs, disks that lie, clocks that jump, and Redis with replicas.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/loadtest/faults/nemesis"
)

// downTimeout bounds the removal of the stack, also after Ctrl-C.
const downTimeout = time.Minute

// errBroken says that the report has what went wrong.
var errBroken = errors.New("promises were broken, or nothing was proved")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Environ(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, environ []string, out io.Writer) (err error) {
	cfg, err := parseConfig(environ)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "faults on %s: seed %d, %d clients, %s\n", cfg.System, cfg.Seed, cfg.Clients, cfg.Duration)
	st, err := bringUp(ctx, cfg, out)
	if st != nil && !cfg.Keep {
		defer func() { err = errors.Join(err, takeDown(ctx, st, out)) }()
	}
	if err != nil {
		return err
	}
	c, err := newCampaign(ctx, cfg, st, out)
	if err != nil {
		return err
	}
	if err := c.run(ctx); err != nil {
		return errors.Join(fmt.Errorf("the campaign broke off, repeat it with %s: %w", cfg.command(), err), c.saveLogs())
	}
	if cfg.other() {
		return c.compare()
	}
	if err := c.report(); err != nil {
		return err
	}
	if len(c.violations) > 0 {
		return errors.Join(errBroken, c.saveLogs())
	}
	return nil
}

func bringUp(ctx context.Context, cfg config, out io.Writer) (*stack.Stack, error) {
	program, err := buildSystem(ctx, cfg)
	if err != nil {
		return nil, err
	}
	st, err := stack.New(stack.Options{Dir: cfg.Dir, Driver: stack.Native, PortOffset: cfg.Offset, BuildTags: failpoints, Out: io.Discard,
		ReplicaProgram: program, Env: []string{
			"SYSTEM=" + cfg.System, // oncepay doesn't care
			"IDEMPOTENCY_LEASE=" + nemesis.Lease.String(),
			"PSP_TIMEOUT=3s", "PAYMENT_DEADLINE=8s", "ORDER_DEADLINE=8s",
			"RECONCILE_GRACE=6s", "RECONCILE_INTERVAL=1s", // longer than the provider is given and a settlement takes
			"UNPAID_ORDER_TTL=20s", "EXPIRY_INTERVAL=1s", // what is scarce comes back while the campaign lasts
			"RATE_LIMIT=100000", // the campaign is one account, and no runaway
		}})
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(out, "bringing the stack up")
	if err := st.Up(ctx); err != nil {
		return st, fmt.Errorf("bring the stack up: %w", err)
	}
	return st, nil
}

func takeDown(ctx context.Context, st *stack.Stack, out io.Writer) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), downTimeout)
	defer cancel()
	fmt.Fprintln(out, "taking the stack down")
	return st.Down(ctx, false)
}

// saveLogs keeps what the services printed before the stack's folder goes.
func (c *campaign) saveLogs() error {
	file, err := os.Create(filepath.Join(c.cfg.Out, c.name()+".log"))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	c.stack.Out = file
	ctx, cancel := context.WithTimeout(context.Background(), downTimeout)
	defer cancel()
	return c.stack.Logs(ctx, nil, false)
}
