package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/internal/tiers"
)

// settings are the replicas' own, with their default of IDEMPOTENCY_LEASE.
type settings struct {
	Environment string        `env:"ENVIRONMENT" envDefault:"development"`
	Lease       time.Duration `env:"IDEMPOTENCY_LEASE" envDefault:"15s"`
}

// Run serves the console of the local deployment in a folder until ctx ends. Each question and
// command reads the deployment's state anew: other commands change it, too.
func Run(ctx context.Context, dir string) error {
	set, err := env.ParseAs[settings]()
	if err != nil {
		return err
	}
	if set.Environment != "development" {
		return errors.New("the console is for development alone, and ENVIRONMENT is " + set.Environment)
	}
	now := func(out io.Writer) (*stack.Stack, error) { return stack.New(stack.Options{Dir: dir, Out: out}) }
	s, err := now(nil)
	if err != nil {
		return err
	}
	cfg := Config{Addr: s.Addr(stack.Console), Lease: set.Lease, Log: slog.New(slog.NewJSONHandler(os.Stderr, nil))}
	cfg.Doors = map[string]string{stack.Nginx: s.URL()}
	for _, replica := range stack.Replicas {
		cfg.Doors[replica] = "http://" + s.Addr(replica)
	}
	cfg.Do = func(ctx context.Context, verb string, args ...string) (string, error) {
		var said strings.Builder
		s, err := now(&said)
		if err == nil {
			err = s.Do(ctx, verb, args...)
		}
		return said.String(), err
	}
	cfg.Status = func(ctx context.Context) (services []stack.ServiceStatus, faults []string, err error) {
		s, err := now(nil)
		if err == nil {
			services, faults, err = s.Status(ctx)
		}
		return services, faults, err
	}
	cfg.Servers = func(ctx context.Context) (servers tiers.Servers) {
		if s, err := now(nil); err == nil {
			servers = tiers.Of(ctx, s)
		}
		return servers
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Addr)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	return New(cfg).Serve(ctx, listener)
}
