// Command stress drives a running stack with orders, payments, races, replays and reused keys at a
// steady rate, and then compares every answer with what is there, by the rules of a fault campaign
// and some that hold only without faults: each key must have had one effect and one answer. The
// stack should be a fresh one, because its books are checked as a whole.
//
//	RATE=50 DURATION=60s go run ./loadtest/stress
//	go run ./loadtest/stress --short
//
// See config for the variables. It ends with a non-zero status when anything is off, be it an
// answer, an effect, or the rate that was driven.
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
	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/shop"
)

const (
	// Enough customers and products that they are shared by requests at the same time, as in a
	// shop, and not by all of them.
	customerCount, productCount = 20, 20
	topUp                       = 500_000_000 // minor units, for each customer
)

// config is read from the environment; the defaults fit `stack up`.
type config struct {
	Rate     int           `env:"RATE" envDefault:"50"`      // requests per second
	Duration time.Duration `env:"DURATION" envDefault:"60s"` // of the load, without set-up and audit

	BaseURL   string `env:"BASE_URL" envDefault:"http://127.0.0.1:8080"` // nginx
	API1URL   string `env:"API1_URL" envDefault:"http://127.0.0.1:8081"`
	API2URL   string `env:"API2_URL" envDefault:"http://127.0.0.1:8082"`
	OpsURL    string `env:"OPS1_URL" envDefault:"http://127.0.0.1:9081"` // for /metrics
	PSPURL    string `env:"PSP_URL" envDefault:"http://127.0.0.1:8090"`  // for its list of charges
	Database  string `env:"DATABASE_URL" envDefault:"postgres://oncepay:oncepay@127.0.0.1:55432/oncepay?sslmode=disable"`
	RedisAddr string `env:"REDIS_ADDR" envDefault:"127.0.0.1:56379"`
	APIKey    string `env:"API_KEY" envDefault:"sk_test_demo"`
	Out       string `env:"STRESS_OUT" envDefault:"loadtest/out"` // folder of the report

	MaxLag time.Duration `env:"MAX_LAG" envDefault:"1s"` // until 99 of 100 events have their effect
}

func main() {
	short := flag.Bool("short", false, "drive for ten seconds only")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	cfg, err := env.ParseAs[config]()
	if *short { // test:all runs a fault campaign beside it, so that times say little
		cfg.Duration, cfg.MaxLag = 10*time.Second, 10*time.Second
	}
	if err == nil {
		err = run(ctx, cfg, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "stress:", err)
		os.Exit(1)
	}
}

// run drives the load, reads everything back, and reports. It fails if a promise was broken.
func run(ctx context.Context, cfg config, out io.Writer) error {
	if cfg.Rate < 1 || cfg.Duration <= 0 {
		return errors.New("RATE and DURATION must be above zero")
	}
	s, err := shop.Open(ctx, shop.Config{BaseURL: cfg.BaseURL, APIKey: cfg.APIKey, Name: "stress",
		SKUs: productCount, Customers: customerCount, TopUp: topUp})
	if err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	fmt.Fprintf(out, "%s: %d requests/s for %s through %s, races at %s and %s\n",
		s.Run, cfg.Rate, cfg.Duration, cfg.BaseURL, cfg.API1URL, cfg.API2URL)
	l := &load{config: cfg, shop: s, rows: map[journal.Purpose]*vegeta.Metrics{all: {}}}
	if err := l.drive(ctx); err != nil {
		return err
	}
	held, err := l.readBooks(ctx)
	if err := errors.Join(err, l.readLag(ctx), l.readBack(ctx)); err != nil {
		return fmt.Errorf("read everything back: %w", err)
	}
	l.check(held)
	return l.report(out)
}
