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

	"github.com/oncepay/oncepay/loadtest/shop"
)

const (
	// Enough customers and products that they are shared by requests at the
	// same time, as in a shop, and not by all of them.
	customerCount, productCount = 20, 20
	topUp                       = 500_000_000 // minor units; each customer gets two
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
	s, err := shop.Open(ctx, shop.Config{BaseURL: cfg.BaseURL, APIKey: cfg.APIKey, Name: "stress",
		SKUs: productCount, Customers: customerCount, TopUps: []int64{topUp, topUp}})
	if err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	fmt.Fprintf(out, "%s: %d requests/s for %s through %s, pairs to %s and %s\n",
		s.Run, cfg.Rate, cfg.Duration, cfg.BaseURL, cfg.API1URL, cfg.API2URL)

	o := newOutcome(cfg, s.Run)
	if err := o.attack(ctx, s, out); err != nil {
		return err
	}
	fmt.Fprintln(out, "reading everything back")
	unread := o.audit(ctx, s)
	return o.conclude(unread, out)
}
