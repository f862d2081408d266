package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/loadtest/faults/nemesis"
)

// config is read from the environment.
type config struct {
	Duration time.Duration `env:"DURATION" envDefault:"2m"`  // of the faults, without set-up and verdict
	Clients  int           `env:"CLIENTS" envDefault:"64"`   // that shop at the same time
	Seed     uint64        `env:"SEED"`                      // of every choice; 0: from the clock
	Seeds    []uint64      `env:"SEEDS"`                     // several runs, one after the other, instead of the one of SEED
	Shortest time.Duration `env:"FAULT_MIN" envDefault:"2s"` // quiet between two faults
	Longest  time.Duration `env:"FAULT_MAX" envDefault:"5s"`
	Floor    float64       `env:"FLOOR" envDefault:"20"`         // answered attempts per second, on average, below which a run proves nothing
	System   string        `env:"SYSTEM" envDefault:"oncepay"`   // another one is counted and not judged; see loadtest/others
	Nemeses  []string      `env:"NEMESES"`                       // only these kinds, by name with commas between; none: all
	Redis    string        `env:"REDIS" envDefault:"single"`     // or sentinel, which adds failovers
	Patience time.Duration `env:"PATIENCE" envDefault:"90s"`     // bounds each wait for what should come to an end after the faults
	Keep     bool          `env:"KEEP"`                          // leave the stack up, to look at
	Offset   int           `env:"PORT_OFFSET" envDefault:"7300"` // puts PostgreSQL and Redis above the ports that Linux gives to clients
	Dir      string        `env:"STACK_DIR" envDefault:".stack-faults"`
	Out      string        `env:"FAULTS_OUT" envDefault:"loadtest/out"` // folder of the report and the journal
}

func parseConfig(environ []string) (config, error) {
	cfg, err := env.ParseAsWithOptions[config](env.Options{Environment: withoutEmpty(env.ToMap(environ))})
	if err != nil {
		return config{}, fmt.Errorf("read environment: %w", err)
	}
	if cfg.Clients < 1 || cfg.Duration <= 0 || cfg.Shortest <= 0 || cfg.Longest <= cfg.Shortest {
		return config{}, errors.New("CLIENTS, DURATION and FAULT_MIN must be above zero, and FAULT_MAX above FAULT_MIN")
	}
	if cfg.Redis == stack.Sentinel && cfg.other() {
		return config{}, errors.New("REDIS=sentinel is for oncepay: the other systems know only one server")
	}
	if _, err := nemesis.NewScheduler(nemesis.Target{Sentinel: cfg.Redis == stack.Sentinel}, cfg.Seed, cfg.Nemeses...); err != nil {
		return config{}, err
	}
	if cfg.Seed == 0 {
		cfg.Seed = uint64(time.Now().UnixNano()) % 1_000_000_000
	}
	return cfg, nil
}

func withoutEmpty(set map[string]string) map[string]string {
	for name, value := range set {
		if value == "" {
			delete(set, name)
		}
	}
	return set
}

// seeds are those of the runs.
func (c config) seeds() []uint64 {
	if len(c.Seeds) > 0 {
		return c.Seeds
	}
	return []uint64{c.Seed}
}

// command repeats the run.
func (c config) command() string {
	again := fmt.Sprintf("task test:faults SEED=%d DURATION=%s CLIENTS=%d", c.Seed, c.Duration, c.Clients)
	if c.other() {
		again += " SYSTEM=" + c.System
	}
	if len(c.Nemeses) > 0 {
		again += fmt.Sprintf(" NEMESES='%s'", strings.Join(c.Nemeses, ","))
	}
	if c.Redis != stack.Single {
		again += " REDIS=" + c.Redis
	}
	return again
}
