// Command bench measures what oncepay costs: its middleware beside others, the service beside its
// servers without it, latency against offered load, how the cost grows with the orders that are
// kept, and how many bytes they take.
//
//	go run ./loadtest/bench                    # all parts, into loadtest/BENCH.md; 21 minutes
//	go run ./loadtest/bench -quick             # the same for an instant each, into loadtest/out: does it run?
//	go run ./loadtest/bench -parts growth,sizes
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
	"syscall"
	"time"

	"gonum.org/v1/plot"

	"github.com/oncepay/oncepay/loadtest/shop"
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
	{"growth", true, growth},
	{"millions", true, millions},
	{"sizes", true, sizes},
}

const (
	command = "go run ./loadtest/bench"
	page    = "loadtest/BENCH.md"
	// scratch is for pages that are not kept. It is no .md, whose links would have to be right.
	scratch = "loadtest/out/bench/BENCH.txt"
)

// config says how long and how much is measured.
type config struct {
	quick       bool
	parts       []string
	page        string
	limit       time.Duration // of the whole run
	rounds      int
	step        time.Duration // of one measurement
	connections []int         // to a middleware
	clients     int           // of the service, at its limit
	skus        int
	offered     []float64     // rates of orders, as multiples of the limit
	window      time.Duration // in which growth is measured
	more        int           // orders between the two windows
	kept        int           // thousands of orders in a database that is full
	sized       int           // orders and payments whose bytes are measured
	redisCalls  int           // of redis-benchmark
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func parseConfig(args []string) (config, error) {
	cfg := config{limit: time.Hour, connections: []int{32, 128}, clients: 32, skus: 1000, offered: []float64{0.25, 0.5, 1, 2, 4, 10},
		sized: 4000, redisCalls: 100_000}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.BoolVar(&cfg.quick, "quick", false, "an instant for each measurement, to see whether it runs")
	only := flags.String("parts", "", "some of middleware, orders, overload, growth, millions, sizes; with commas between (default all)")
	flags.StringVar(&cfg.page, "page", "", "the page to write (default "+page+" if all parts run, otherwise "+scratch+")")
	flags.IntVar(&cfg.rounds, "rounds", 3, "how often each measurement is made")
	flags.DurationVar(&cfg.step, "for", 3*time.Second, "how long one measurement takes")
	flags.DurationVar(&cfg.window, "window", time.Minute, "growth, millions: how long is measured each time")
	flags.IntVar(&cfg.kept, "kept", 5000, "millions: `thousands` of orders that are kept, and twice as many keys")
	flags.IntVar(&cfg.more, "more", 60, "growth: `thousands` of orders between")
	if err := flags.Parse(args); err != nil {
		return cfg, err
	}
	cfg.more *= 1000
	if cfg.quick {
		cfg.limit, cfg.rounds, cfg.step, cfg.connections, cfg.skus = 5*time.Minute, 1, 200*time.Millisecond, []int{32}, 50
		cfg.offered, cfg.window, cfg.more, cfg.kept, cfg.sized, cfg.redisCalls = []float64{0.25}, time.Second/2, 100, 10, 100, 2000
	}
	for _, p := range parts {
		if *only == "" || slices.Contains(strings.Split(*only, ","), p.name) {
			cfg.parts = append(cfg.parts, p.name)
		}
	}
	if *only != "" && len(cfg.parts) != len(strings.Split(*only, ",")) {
		return cfg, fmt.Errorf("-parts: %q is not among the parts", *only)
	}
	if cfg.rounds < 1 || cfg.step <= 0 || cfg.window <= 0 || cfg.more < 1 || cfg.kept < 1 {
		return cfg, errors.New("-rounds, -for, -window, -more and -kept must be above zero")
	}
	if cfg.page == "" {
		cfg.page = scratch
		if !cfg.quick && *only == "" {
			cfg.page = page
		}
	}
	return cfg, nil
}

// bench is one run.
type bench struct {
	cfg        config
	out        io.Writer
	bin        string // folder of programs that are built for the run
	*system           // nil: no stack is up
	plots      map[string]*plot.Plot
	unexpected []string // what went wrong on the way
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	cfg, err := parseConfig(args)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.limit)
	defer cancel()
	b := &bench{cfg: cfg, out: out, plots: map[string]*plot.Plot{}}
	if b.bin, err = os.MkdirTemp("", "oncepay-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.down(ctx), os.RemoveAll(b.bin)) }()
	began := time.Now()
	machine, load := thisMachine(ctx)
	found, err := b.measure(ctx)
	if err != nil {
		return err
	}
	if err := b.write(head{strings.Join(append([]string{command}, args...), " "), began.Format(time.DateOnly), time.Since(began).Round(time.Second).String(),
		machine, load, cfg.step.String(), cfg.rounds, found}); err != nil {
		return err
	}
	sections, err := render("sections", found)
	fmt.Fprintf(out, "%s\n%d parts in %.0f s: %s\n", sections, len(found), time.Since(began).Seconds(), cfg.page)
	if err != nil {
		return err
	}
	if len(b.unexpected) > 0 {
		return fmt.Errorf("not all answers were those expected:\n%s", strings.Join(b.unexpected, "\n"))
	}
	return nil
}

// measure takes one part after the other. Each has a stack of its own, unless it is quick.
func (b *bench) measure(ctx context.Context) (map[string]any, error) {
	found := map[string]any{}
	for _, p := range parts {
		if !slices.Contains(b.cfg.parts, p.name) {
			continue
		}
		if p.needsStack && (b.system == nil || !b.cfg.quick) {
			if err := errors.Join(b.down(ctx), b.up(ctx)); err != nil {
				return nil, err
			}
		}
		fmt.Fprintf(b.out, "%s\n", p.name)
		measured, err := b.part(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		found[p.name] = measured
	}
	return found, nil
}

// part takes one part, with a shop of its own. In a quick run it is little.
func (b *bench) part(ctx context.Context, p part) (_ map[string]any, err error) {
	if p.needsStack {
		b.shop, err = shop.Open(ctx, shop.Config{BaseURL: b.stack.URL(), APIKey: apiKey, Name: "bench", SKUs: b.cfg.skus, Customers: customers, Orders: b.cfg.skus})
		if err != nil {
			return nil, err
		}
	}
	return p.measure(ctx, b)
}
