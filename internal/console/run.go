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

// Run serves the console of the local deployment in a folder until ctx ends.
func Run(ctx context.Context, dir string) error {
	set, err := env.ParseAs[settings]()
	if err != nil {
		return err
	}
	if set.Environment != "development" {
		return errors.New("the console is for development alone, and ENVIRONMENT is " + set.Environment)
	}
	cfg, err := forStack(dir)
	if err != nil {
		return err
	}
	cfg.Log, cfg.Lease = slog.New(slog.NewJSONHandler(os.Stderr, nil)), set.Lease
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Addr)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	return New(cfg).Serve(ctx, listener)
}

// forStack is a console for the deployment in a folder. Each question and command reads the
// deployment's state anew: other commands change it, too.
func forStack(dir string) (Config, error) {
	now := func(out io.Writer) (*stack.Stack, error) { return stack.New(stack.Options{Dir: dir, Out: out}) }
	s, err := now(nil)
	if err != nil {
		return Config{}, err
	}
	return Config{
		Addr:  s.Addr(stack.Console),
		Doors: map[string]string{stack.Nginx: s.URL(), stack.API1: "http://" + s.Addr(stack.API1), stack.API2: "http://" + s.Addr(stack.API2)},
		Do: func(ctx context.Context, verb string, args ...string) (string, error) {
			var said strings.Builder
			s, err := now(&said)
			if err == nil {
				err = s.Do(ctx, verb, args...)
			}
			return said.String(), err
		},
		Status: func(ctx context.Context) ([]stack.ServiceStatus, []string, error) {
			s, err := now(nil)
			if err != nil {
				return nil, nil, err
			}
			return s.Status(ctx)
		},
		Servers: func(ctx context.Context) tiers.Servers {
			s, err := now(nil)
			if err != nil {
				return tiers.Servers{}
			}
			return tiers.Of(ctx, s)
		},
	}, nil
}
