package main

import (
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"
)

// shortDuration is enough for some hundred keys; `task test:all` uses it.
const shortDuration = 10 * time.Second

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
	if *short {
		cfg.Duration = shortDuration
	}
	if cfg.Rate < 1 || cfg.Duration <= 0 {
		return config{}, errors.New("RATE and DURATION must be above zero")
	}
	for _, url := range []*string{&cfg.BaseURL, &cfg.API1URL, &cfg.API2URL, &cfg.Ops1URL, &cfg.Ops2URL, &cfg.PSPURL} {
		*url = strings.TrimRight(*url, "/")
	}
	return cfg, nil
}

// requests is how many are sent in all.
func (c config) requests() int {
	return max(1, int(float64(c.Rate)*c.Duration.Seconds()))
}

func (c config) pace() pacer { return pacer{c.Rate, uint64(c.requests())} }
