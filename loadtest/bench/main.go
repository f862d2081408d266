// Command bench measures what oncepay costs: its middleware beside others, the service, latency
// against offered load, how the cost grows with the orders that are kept, and how many bytes they
// take.
//
//	go run ./loadtest/bench                    # all parts, into loadtest/BENCH.md; over 20 minutes
//	go run ./loadtest/bench -quick             # the same for an instant each: does it run?
//	go run ./loadtest/bench -parts millions,sizes
//
// What is compared takes turns, for several rounds. The client shares the machine with the servers,
// so rates are those of this machine with all of it; CPU time per request is of each server alone.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/plot"

	"github.com/oncepay/oncepay/internal/stack"
)

// part is a section of the page, whose template gets what it found.
type part struct {
	name       string
	needsStack bool
	measure    func(context.Context, *bench) (found map[string]any, err error)
}

var parts = []part{
	{"middleware", false, middleware},
	{"orders", true, orders},
	{"overload", true, overload},
	{"millions", true, millions},
	{"sizes", true, sizes},
}

// scratch is for pages that are not kept. It is no .md, whose links would have to be right.
const scratch = "loadtest/out/bench/BENCH.txt"

// config says how long and how much is measured.
type config struct {
	quick       bool
	parts       []string
	page        string
	rounds      int
	step        time.Duration // of one measurement
	connections []int         // to a middleware
	skus        int
	offered     []float64     // rates of orders, as multiples of the limit
	window      time.Duration // of one measurement, where rows are many
	kept        int           // orders in a database that is full, beside twice as many keys
	sized       int           // orders and payments whose bytes are measured
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), stack.Interrupts()...)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func parseConfig(args []string) (config, error) {
	cfg := config{page: "loadtest/BENCH.md", rounds: 3, step: 3 * time.Second, connections: []int{32, 128}, skus: 1000,
		offered: []float64{0.25, 0.5, 1, 2, 4, 10}, window: time.Minute, kept: 5_000_000, sized: 4000}
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.BoolVar(&cfg.quick, "quick", false, "an instant for each measurement, to see whether it runs")
	only := flags.String("parts", strings.Join(names, ","), "those to measure, with commas between")
	if err := flags.Parse(args); err != nil {
		return cfg, err
	}
	if cfg.quick {
		cfg = config{quick: true, rounds: 1, step: 200 * time.Millisecond, connections: []int{32}, skus: 50,
			offered: []float64{0.25}, window: time.Second / 2, kept: 10_000, sized: 100}
	}
	cfg.parts = strings.Split(*only, ",")
	for _, name := range cfg.parts {
		if !slices.Contains(names, name) {
			return cfg, fmt.Errorf("-parts: there is no part %q", name)
		}
	}
	if cfg.quick || len(cfg.parts) < len(parts) {
		cfg.page = scratch
	}
	return cfg, nil
}

// bench is one run.
type bench struct {
	cfg        config
	out        io.Writer
	*system    // nil: no stack is up
	plots      map[string]*plot.Plot
	unexpected []error // what went wrong on the way
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	cfg, err := parseConfig(args)
	if err != nil {
		return err
	}
	b := &bench{cfg: cfg, out: out, plots: map[string]*plot.Plot{}}
	defer func() { err = errors.Join(err, b.down(ctx)) }()
	h := head{Command: strings.Join(append([]string{"go run ./loadtest/bench"}, args...), " "), Began: time.Now(),
		Step: cfg.step, Rounds: cfg.rounds, Found: map[string]map[string]any{}}
	h.Machine, h.Load = thisMachine(ctx)
	for _, p := range parts {
		if slices.Contains(cfg.parts, p.name) {
			if h.Found[p.name], err = b.measure(ctx, p); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
	}
	h.Took = time.Since(h.Began).Round(time.Second)
	fmt.Fprintf(out, "%d parts in %s: %s\n", len(h.Found), h.Took, cfg.page)
	return errors.Join(append(b.unexpected, b.write(h))...)
}

// measure measures one part. Each has a stack of its own, unless the run is quick.
func (b *bench) measure(ctx context.Context, p part) (map[string]any, error) {
	fmt.Fprintln(b.out, p.name)
	if p.needsStack && (b.system == nil || !b.cfg.quick) {
		if err := errors.Join(b.down(ctx), b.up(ctx)); err != nil {
			return nil, err
		}
	}
	return p.measure(ctx, b)
}
