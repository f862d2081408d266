// Command console serves the console of the local deployment. `stack up` starts it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/oncepay/oncepay/internal/console"
)

// defaultLease is the replicas' own default of IDEMPOTENCY_LEASE.
const defaultLease = 15 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Getenv)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "console:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends. The environment is that of the replicas.
func run(ctx context.Context, args []string, getenv func(string) string) error {
	flags := flag.NewFlagSet("console", flag.ContinueOnError)
	dir := flags.String("dir", ".stack", "the stack's `folder`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if environment := getenv("ENVIRONMENT"); environment != "" && environment != "development" {
		return errors.New("the console is for development alone, and ENVIRONMENT is " + environment)
	}
	cfg, err := console.ForStack(*dir)
	if err != nil {
		return err
	}
	cfg.Log = slog.New(slog.NewJSONHandler(os.Stderr, nil))
	cfg.Lease = defaultLease
	if text := getenv("IDEMPOTENCY_LEASE"); text != "" {
		if cfg.Lease, err = time.ParseDuration(text); err != nil {
			return fmt.Errorf("IDEMPOTENCY_LEASE: %w", err)
		}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Addr)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	return console.New(cfg).Serve(ctx, listener)
}
