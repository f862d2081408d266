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

	"github.com/caarlos0/env/v11"

	"github.com/oncepay/oncepay/internal/console"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "console:", err)
		os.Exit(1)
	}
}

// settings are the replicas' own, with their default of IDEMPOTENCY_LEASE.
type settings struct {
	Environment string        `env:"ENVIRONMENT" envDefault:"development"`
	Lease       time.Duration `env:"IDEMPOTENCY_LEASE" envDefault:"15s"`
}

// run serves until ctx ends.
func run(ctx context.Context) error {
	dir := flag.String("dir", ".stack", "the stack's `folder`")
	flag.Parse()
	set, err := env.ParseAs[settings]()
	if err != nil {
		return err
	}
	if set.Environment != "development" {
		return errors.New("the console is for development alone, and ENVIRONMENT is " + set.Environment)
	}
	cfg, err := console.ForStack(*dir)
	if err != nil {
		return err
	}
	cfg.Log, cfg.Lease = slog.New(slog.NewJSONHandler(os.Stderr, nil)), set.Lease
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Addr)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	return console.New(cfg).Serve(ctx, listener)
}
