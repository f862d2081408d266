package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/loadtest/faults/fault"
)

// shortExpiry is the EXPIRY of answers that are crossed hundreds of times.
const shortExpiry = "short"

// config is read from the environment.
type config struct {
	Duration  time.Duration `env:"DURATION" envDefault:"2m"`  // of the faults, without set-up and verdict
	Clients   int           `env:"CLIENTS" envDefault:"64"`   // that shop at the same time
	Seed      uint64        `env:"SEED"`                      // of every choice; 0: from the clock
	Shortest  time.Duration `env:"FAULT_MIN" envDefault:"2s"` // quiet between two faults
	Longest   time.Duration `env:"FAULT_MAX" envDefault:"5s"`
	Floor     float64       `env:"FLOOR" envDefault:"20"`         // answered attempts per second, on average, below which a run is inconclusive
	System    string        `env:"SYSTEM" envDefault:"oncepay"`   // another one is scored, not verified; see loadtest/others
	Faults    []string      `env:"FAULTS"`                        // only these kinds, by name with commas between; none: all
	Generated int           `env:"GENERATED" envDefault:"20000"`  // requests that are generated from openapi.yaml, after the faults
	Redis     string        `env:"REDIS" envDefault:"single"`     // or sentinel, which adds failovers
	Postgres  string        `env:"POSTGRES" envDefault:"single"`  // or sync-standby, which adds promotions of the standby
	Pooler    string        `env:"POOLER"`                        // or pgbouncer, between the replicas and PostgreSQL
	Expiry    string        `env:"EXPIRY" envDefault:"long"`      // or short: answers about money are purged while clients still repeat their requests
	Patience  time.Duration `env:"PATIENCE" envDefault:"90s"`     // bounds each wait after the faults: some take over a minute
	Base      string        `env:"BASE"`                          // program of an earlier release, with failpoints, that runs at first; tests/upgrade/build.sh makes it
	Keep      bool          `env:"KEEP"`                          // leave the stack up, to look at
	Offset    int           `env:"PORT_OFFSET" envDefault:"7300"` // puts PostgreSQL and Redis above the ports that Linux gives to clients
	Dir       string        `env:"STACK_DIR" envDefault:".stack-faults"`
	Out       string        `env:"FAULTS_OUT" envDefault:"loadtest/out"` // folder of the report and the journal

	set string // what was set, for a repetition
}

func parseConfig(environ []string) (config, error) {
	set := env.ToMap(environ)
	maps.DeleteFunc(set, func(_, value string) bool { return value == "" })
	cfg, err := env.ParseAsWithOptions[config](env.Options{Environment: set})
	if err != nil {
		return config{}, fmt.Errorf("read environment: %w", err)
	}
	if cfg.Clients < 1 || cfg.Duration <= 0 || cfg.Shortest <= 0 || cfg.Longest <= cfg.Shortest {
		return config{}, errors.New("CLIENTS, DURATION and FAULT_MIN must be above zero, and FAULT_MAX above FAULT_MIN")
	}
	if cfg.Expiry != "long" && cfg.Expiry != shortExpiry {
		return config{}, fmt.Errorf("EXPIRY is long or %s", shortExpiry)
	}
	if c := cfg.Postgres; c != stack.Single && c != stack.SyncStandby {
		return config{}, fmt.Errorf("POSTGRES is %s or %s: what an asynchronous standby loses breaks promises", stack.Single, stack.SyncStandby)
	}
	for _, name := range []string{"DURATION", "CLIENTS", "SYSTEM", "FAULTS", "EXPIRY", "REDIS", "POSTGRES", "POOLER"} {
		if value := set[name]; strings.Contains(value, " ") {
			cfg.set += " " + name + "='" + value + "'"
		} else if value != "" {
			cfg.set += " " + name + "=" + value
		}
	}
	if cfg.Base != "" {
		cfg.Generated = 0 // those are for this release alone
	}
	target := fault.Target{Redis: cfg.Redis, Postgres: cfg.Postgres, Base: cfg.Base}
	if _, err := fault.NewScheduler(target, cfg.Seed, cfg.Faults...); err != nil {
		return config{}, err
	}
	if cfg.Seed == 0 {
		cfg.Seed = uint64(time.Now().UnixNano()) % 1_000_000_000
	}
	return cfg, nil
}

// command repeats the run.
func (c config) command() string {
	task := "test:faults"
	if c.Base != "" {
		task = "test:upgrade"
	}
	return fmt.Sprintf("task %s SEED=%d%s", task, c.Seed, c.set)
}

// The systems that this package knows: the one that is verified, and the one that protects nothing.
// loadtest/others has the others.
const ours, control = "oncepay", "none"

const (
	// failpoints is the build tag of replicas that can be made to die at an instruction.
	failpoints = "failpoints"
	// othersModule makes the replicas' program of the other systems.
	othersModule = "loadtest/others"
	// stuckAfter is for how long a key may be in progress: our lease, and patience.
	stuckAfter = fault.Lease + 10*time.Second
)

// other says that a run is a comparison: what goes wrong is counted.
func (c config) other() bool { return c.System != ours }

// programsOf are the programs that run in place of the oncepay that the stack builds: an earlier
// release at first, or another system, which is built.
func programsOf(ctx context.Context, cfg config) (map[string]string, error) {
	if !cfg.other() && cfg.Base == "" {
		return nil, nil
	}
	if !cfg.other() {
		return map[string]string{stack.API1: cfg.Base, stack.API2: cfg.Base, stack.Oncepay: cfg.Base}, nil
	}
	program, err := filepath.Abs(filepath.Join(cfg.Out, "others"))
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-C", othersModule, "-tags", failpoints, "-o", program, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build %s: %w\n%s", othersModule, err, output)
	}
	return map[string]string{stack.API1: program, stack.API2: program}, nil
}
