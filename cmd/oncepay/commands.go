package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/oncepay/oncepay/internal/app"
)

// healthTimeout is above the time that a replica takes for its own checks, and below the interval
// of every usual health checker.
const healthTimeout = 4 * time.Second

func serve(ctx context.Context, cfg app.Config, log *slog.Logger) error {
	replica, err := app.New(ctx, cfg, log)
	if err != nil {
		return err
	}
	return replica.Serve(ctx)
}

func migrate(ctx context.Context, direction string, cfg app.Config, log *slog.Logger, stdout io.Writer) error {
	version, err := app.Migrate(ctx, cfg, log, direction)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "schema version %d\n", version)
	return err
}

func seed(ctx context.Context, cfg app.Config, log *slog.Logger, stdout io.Writer) error {
	if err := app.Seed(ctx, cfg, log); err != nil {
		return err
	}
	_, err := fmt.Fprintln(stdout, "demo data is there: accounts with the API keys sk_test_demo and sk_test_other, and their products")
	return err
}

func healthcheck(ctx context.Context, cfg app.Config) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+reachable(cfg.OpsAddr)+"/readyz", nil)
	if err != nil {
		return fmt.Errorf("healthcheck: %w", err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("healthcheck: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		body, err := io.ReadAll(io.LimitReader(response.Body, 4<<10))
		return errors.Join(fmt.Errorf("healthcheck: %s: %s", response.Status, body), err)
	}
	return nil
}

// reachable turns an address to listen on into one to connect to: all interfaces, such as ":9081",
// include loopback.
func reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if ip, err := netip.ParseAddr(host); host == "" || (err == nil && ip.IsUnspecified()) {
		return net.JoinHostPort("localhost", port)
	}
	return addr
}
