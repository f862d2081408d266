// Command mutants tests the fault campaign: it takes safeguards out of the service, one at a time,
// and a campaign has to find each of them missing. What no campaign finds is a promise that is not
// checked.
//
//	ONLY=settle-fence,inbox-dedupe go run ./loadtest/mutants
//
// Each mutant is a patch beside this file, whose header says what it removes, which promise that
// breaks and which faults show it. It is applied to a copy of HEAD, built, and run in campaigns
// that become longer until one finds a violation. A tree without a patch has to pass under the same
// faults.
//
// See config for the variables. It ends with a non-zero status when a mutant survives, or could not
// be tried.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/caarlos0/env/v11"
)

// config is read from the environment.
type config struct {
	Only       []string      `env:"ONLY"`                          // mutants by name, with commas between; none: all
	Limit      time.Duration `env:"LIMIT" envDefault:"10m"`        // after which a mutant that was not caught has survived
	SideBySide int           `env:"SIDE_BY_SIDE" envDefault:"2"`   // campaigns at a time
	Seed       uint64        `env:"SEED" envDefault:"1"`           // of the first campaign of each mutant
	Offset     int           `env:"PORT_OFFSET" envDefault:"7900"` // of the first stack's ports; the others' follow
	Out        string        `env:"MUTANTS_OUT" envDefault:"loadtest/out/mutants"`
	Report     string        `env:"REPORT"` // file for the table as Markdown; empty: none
}

func parseConfig(environ []string) (config, error) {
	set := env.ToMap(environ)
	maps.DeleteFunc(set, func(_, value string) bool { return value == "" })
	cfg, err := env.ParseAsWithOptions[config](env.Options{Environment: set})
	if err != nil {
		return config{}, fmt.Errorf("read environment: %w", err)
	}
	if cfg.Limit <= 0 || cfg.SideBySide < 1 {
		return config{}, errors.New("LIMIT and SIDE_BY_SIDE must be above zero")
	}
	return cfg, nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Environ(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, environ []string, out io.Writer) error {
	cfg, err := parseConfig(environ)
	if err != nil {
		return err
	}
	mutants, err := readMutants(folder, cfg.Only)
	if err != nil {
		return err
	}
	began := time.Now()
	l, err := openLab(ctx, cfg, out)
	if err != nil {
		return err
	}
	defer l.close()
	results := l.tryAll(ctx, mutants)
	if err := ctx.Err(); err != nil {
		return err
	}
	t := table{commit: l.commit, date: began, took: time.Since(began), results: results}
	t.print(out)
	if cfg.Report != "" {
		if err := os.WriteFile(cfg.Report, t.markdown(), 0o644); err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
	}
	return t.verdict()
}
