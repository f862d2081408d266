// Command stress drives a running stack with orders, payments, duplicates,
// replays and reused keys at a steady rate, and then compares every answer with
// what is there: each key must have had one effect and one answer.
//
//	RATE=50 DURATION=60s go run ./loadtest/stress
//	go run ./loadtest/stress --short
//
// See config for the variables. It ends with a non-zero status when anything
// is off, be it an answer, an effect, or the rate that was driven.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Environ(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "stress:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args, environ []string, out io.Writer) error {
	cfg, err := parseConfig(args, environ)
	if err != nil {
		return err
	}
	shop, err := openShop(ctx, cfg)
	if err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	fmt.Fprintf(out, "stress %s: %d requests/s for %s through %s, pairs to %s and %s\n",
		cfg.run, cfg.Rate, cfg.Duration, cfg.BaseURL, cfg.API1URL, cfg.API2URL)

	result, err := attack(ctx, cfg, shop, out)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "reading everything back")
	if err := result.audit(ctx, cfg, shop); err != nil {
		result.unread = fmt.Errorf("read everything back: %w", err)
	}
	return conclude(cfg, result, out)
}
