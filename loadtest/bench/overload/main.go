// Command overload measures what a running stack does when more is asked of it than it can do:
// latency against offered load, with an open model, for each class of requests.
//
//	go run ./loadtest/bench/overload                        # 300 to 3,000 orders a second
//	go run ./loadtest/bench/overload -rates 400,800 -for 5s
//	go run ./loadtest/bench/overload -retries 400           # 30 s of four times that rate, by clients that retry
//
// The load generator shares the machine with the stack: what it costs, the stack lacks. A rate ends
// on time, even if not all that is offered was sent until then: sent/s is what was.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/caarlos0/env/v11"

	"github.com/oncepay/oncepay/loadtest/bench/curve"
)

// config is read from the environment, for what the stack is, and from flags, for what is measured.
type config struct {
	BaseURL  string `env:"BASE_URL" envDefault:"http://127.0.0.1:8080"` // nginx
	PSPURL   string `env:"PSP_URL" envDefault:"http://127.0.0.1:8090"`
	Database string `env:"DATABASE_URL" envDefault:"postgres://oncepay:oncepay@127.0.0.1:55432/oncepay?sslmode=disable"`
	Redis    string `env:"REDIS_ADDR" envDefault:"127.0.0.1:56379"`
	APIKey   string `env:"API_KEY" envDefault:"sk_test_demo"`

	rates   []int // orders a second
	step    time.Duration
	retries int // 0: draw the curve
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Environ(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "overload:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args, environ []string, out io.Writer) error {
	cfg, err := parseConfig(args, environ)
	if err != nil {
		return err
	}
	s, err := curve.Open(ctx, cfg.BaseURL, cfg.APIKey)
	if err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	if cfg.retries > 0 {
		return recovery(ctx, cfg, s, out)
	}
	_, err = curve.Measure(ctx, s, cfg.rates, cfg.step, out)
	return err
}

func parseConfig(args, environ []string) (config, error) {
	cfg, err := env.ParseAsWithOptions[config](env.Options{Environment: env.ToMap(environ)})
	if err != nil {
		return config{}, fmt.Errorf("read environment: %w", err)
	}
	flags := flag.NewFlagSet("overload", flag.ContinueOnError)
	rates := flags.String("rates", "300,600,900,1500,3000", "orders a second, with commas between")
	flags.DurationVar(&cfg.step, "for", 10*time.Second, "how long each rate is driven")
	flags.IntVar(&cfg.retries, "retries", 0, "the limit in orders a second: four times that is driven by clients that retry")
	if err := flags.Parse(args); err != nil {
		return config{}, err
	}
	for rate := range strings.SplitSeq(*rates, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(rate))
		if err != nil || n < 1 {
			return config{}, fmt.Errorf("-rates: %q is no rate", rate)
		}
		cfg.rates = append(cfg.rates, n)
	}
	if cfg.step <= 0 || cfg.retries < 0 {
		return config{}, errors.New("-for must be above zero, and -retries not below it")
	}
	return cfg, nil
}
