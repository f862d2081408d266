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
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/caarlos0/env/v11"

	"github.com/oncepay/oncepay/loadtest/shop"
)

const (
	// shortDuration is enough for some hundred keys; `task test:all` uses it.
	shortDuration = 10 * time.Second
	// Enough customers and products that they are shared by requests at the
	// same time, as in a shop, and not by all of them.
	customerCount, productCount = 20, 20
	topUp                       = 500_000_000 // minor units; each customer gets two
)

// config is read from the environment; the defaults fit `stack up`.
type config struct {
	Rate     int           `env:"RATE" envDefault:"50"`      // requests per second
	Duration time.Duration `env:"DURATION" envDefault:"60s"` // of the load, without set-up and audit

	BaseURL string `env:"BASE_URL" envDefault:"http://127.0.0.1:8080"` // nginx
	API1URL string `env:"API1_URL" envDefault:"http://127.0.0.1:8081"`
	API2URL string `env:"API2_URL" envDefault:"http://127.0.0.1:8082"`
	Ops1URL string `env:"OPS1_URL" envDefault:"http://127.0.0.1:9081"` // for /metrics
	Ops2URL string `env:"OPS2_URL" envDefault:"http://127.0.0.1:9082"`
	PSPURL  string `env:"PSP_URL" envDefault:"http://127.0.0.1:8090"` // for its list of charges
	APIKey  string `env:"API_KEY" envDefault:"sk_test_demo"`
	Out     string `env:"STRESS_OUT" envDefault:"loadtest/out"` // folder of the report

	// Database holds the events; "none" leaves their lag unmeasured.
	Database string `env:"DATABASE_URL" envDefault:"postgres://oncepay:oncepay@127.0.0.1:55432/oncepay?sslmode=disable"`

	maxLag time.Duration // of events
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Environ(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "stress:", err)
		os.Exit(1)
	}
}

func parseConfig(args, environ []string) (config, error) {
	cfg, err := env.ParseAsWithOptions[config](env.Options{Environment: env.ToMap(environ)})
	if err != nil {
		return config{}, fmt.Errorf("read environment: %w", err)
	}
	flags := flag.NewFlagSet("stress", flag.ContinueOnError)
	short := flags.Bool("short", false, "drive for "+shortDuration.String()+" only")
	if err := flags.Parse(args); err != nil {
		return config{}, err
	}
	cfg.maxLag = maxEventLag
	if *short { // test:all runs a fault campaign beside it, so that times say little
		cfg.Duration, cfg.maxLag = shortDuration, eventsTimeout
	}
	if cfg.Rate < 1 || cfg.Duration <= 0 {
		return config{}, errors.New("RATE and DURATION must be above zero")
	}
	return cfg, nil
}

// requests is how many are sent in all.
func (c config) requests() int {
	return max(1, int(float64(c.Rate)*c.Duration.Seconds()))
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
	l := newLoad(cfg, s)
	if err := l.drive(ctx, out); err != nil {
		return err
	}
	fmt.Fprintln(out, "reading everything back")
	o, unread := l.audit(ctx)
	o.print(out)
	if err := o.writeFiles(out); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if unread == nil && !o.Passed {
		return errOff
	}
	return unread
}
