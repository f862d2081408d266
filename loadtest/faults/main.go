// Command faults proves the guarantee: it brings up a stack of its own, has clients shop there
// while it kills, pauses, cuts off and overloads its parts, heals everything, and then compares
// every answer that a client saw with what the database, the provider and the event stream hold.
//
//	DURATION=2m CLIENTS=64 SEED=1 go run ./loadtest/faults
//	go run ./loadtest/faults summary loadtest/out/*.json
//
// See config for the variables, and README.md for how to read and repeat a violation. It ends with
// a non-zero status on any violation, and when the run was inconclusive. The second form writes a
// page of Markdown about many runs. What no run covers is listed in report.go.
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
	"github.com/oncepay/oncepay/loadtest/faults/fault"
)

// downTimeout bounds the removal of the stack, also after Ctrl-C.
const downTimeout = time.Minute

// errBroken says that the report shows violations.
var errBroken = errors.New("promises were broken, or the run was inconclusive")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), stack.Interrupts()...)
	defer stop()
	// An interruption may end the reader of our output first, and the stack still goes down.
	// signal.Ignore would make all services ignore the signal, too.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	if err := command(ctx, os.Args[1:], os.Environ(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args, environ []string, out io.Writer) error {
	if len(args) > 1 && args[0] == "summary" {
		return writeOverview(out, args[1:])
	}
	if len(args) > 0 {
		return fmt.Errorf("unknown arguments %q: nothing, or summary and some reports", args)
	}
	cfg, err := parseConfig(environ)
	if err != nil {
		return err
	}
	return run(ctx, cfg, out)
}

// run is one campaign on a stack of its own.
func run(ctx context.Context, cfg config, out io.Writer) (err error) {
	fmt.Fprintf(out, "faults on %s: seed %d, %d clients, %s\n", cfg.System, cfg.Seed, cfg.Clients, cfg.Duration)
	st, err := bringUp(ctx, cfg, out)
	if st != nil && !cfg.Keep {
		defer func() {
			fmt.Fprintln(out, "taking the stack down")
			downCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), downTimeout)
			defer cancel()
			err = errors.Join(err, st.Down(downCtx))
		}()
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx) // of what watches the stack, before that goes
	defer cancel()
	c, err := newCampaign(ctx, cfg, st, out)
	if err != nil {
		return err
	}
	if err = c.run(ctx); err != nil {
		err = fmt.Errorf("the campaign broke off, repeat it with %s: %w", cfg.command(), err)
	} else if err = c.report(c.journal.Attempts()); err == nil && len(c.Violations) > 0 {
		err = errBroken
	}
	if err != nil {
		err = errors.Join(err, c.saveLogs())
	}
	return err
}

func bringUp(ctx context.Context, cfg config, out io.Writer) (*stack.Stack, error) {
	programs, err := programsOf(ctx, cfg)
	if err != nil {
		return nil, err
	}
	options := stack.Options{Dir: cfg.Dir, Driver: stack.Native, PortOffset: cfg.Offset, Redis: cfg.Redis, Postgres: cfg.Postgres, Pooler: cfg.Pooler,
		BuildTags: failpoints, Out: io.Discard, Programs: programs, Env: []string{
			"SYSTEM=" + cfg.System, // oncepay doesn't care
			"IDEMPOTENCY_LEASE=" + fault.Lease.String(),
			"PSP_TIMEOUT=3s", "PAYMENT_DEADLINE=8s", "ORDER_DEADLINE=8s",
			"RECONCILE_GRACE=6s", "RECONCILE_INTERVAL=1s", // longer than the provider is given and a settlement takes
			"UNPAID_ORDER_TTL=20s", "EXPIRY_INTERVAL=1s", // what is scarce comes back while the campaign lasts
			// The campaign is one account, and no runaway.
			"RATE_LIMIT=100000", "IDEMPOTENCY_ACCOUNT_KEYS=100000000", "IDEMPOTENCY_ACCOUNT_BYTES=100000000000",
		}}
	if cfg.Expiry == shortExpiry {
		options.Env = append(options.Env, "IDEMPOTENCY_PAYMENT_TTL=5s", "PURGE_INTERVAL=1s")
	}
	st, err := stack.New(options)
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(out, "bringing the stack up")
	if err := st.Up(ctx); err != nil {
		return st, fmt.Errorf("bring the stack up: %w", err)
	}
	return st, nil
}

// saveLogs keeps what the services printed before the stack's folder goes.
func (c *campaign) saveLogs() error {
	file, err := os.Create(filepath.Join(c.cfg.Out, c.name()+".log"))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), downTimeout)
	defer cancel()
	return c.stack.Logs(ctx, file, nil, false)
}
