// Command cluster is the measured part of task kubernetes:try: clients order and pay at a steady
// rate while a step after the other replaces, kills and takes away parts of the cluster. It writes
// what the clients noticed of each step, and compares every answer with the books. It runs on the
// node (scripts/kubernetes/node.sh), with kubectl and ctr on its PATH.
//
//	cluster          a rolling update, and a replica's death
//	cluster --all    every step; ten minutes
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

	"github.com/oncepay/oncepay/internal/wait"
	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
	"github.com/oncepay/oncepay/loadtest/faults/workload"
)

const (
	// settle is before the first step and after each, so that what a step breaks is its own.
	settle = 5 * time.Second
	// finishTimeout bounds the clients' last retries.
	finishTimeout = 90 * time.Second
	// booksTimeout bounds the wait for what the service finishes alone: the reconciler looks at
	// payments that are a minute old, and consumers catch up after an outage of Redis.
	booksTimeout = 3 * time.Minute
	// patience bounds the check of one key's history.
	patience = 10 * time.Second
)

var errBroken = errors.New("promises were broken")

// config is read from the environment.
type config struct {
	Rate  int    `env:"RATE" envDefault:"50"`   // orders a second; every second one is paid
	Limit int    `env:"LIMIT" envDefault:"300"` // the same while the autoscaler works
	URL   string `env:"BASE_URL,required"`      // the Service
	PSP   string `env:"PSP_URL,required"`
	DB    string `env:"DATABASE_URL,required"`
	Redis string `env:"REDIS_ADDR,required"`

	all bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	cfg, err := env.ParseAs[config]()
	if err != nil {
		return fmt.Errorf("read environment: %w", err)
	}
	flags := flag.NewFlagSet("cluster", flag.ContinueOnError)
	flags.BoolVar(&cfg.all, "all", false, "every step")
	if err := flags.Parse(args); err != nil {
		return err
	}
	shop, err := workload.OpenShop(ctx, cfg.URL, []string{"sk_test_demo"})
	if err != nil {
		return err
	}
	j := journal.NewWriter(io.Discard)
	// One address for all: the Service chooses the replica.
	wire := workload.NewWire(map[string]string{"nginx": cfg.URL, "api-1": cfg.URL, "api-2": cfg.URL}, j)
	defer wire.Close()
	t := &trial{cfg: cfg, out: out, shop: shop, journal: j, wire: wire, clients: workload.NewClients(wire, shop, 1, 1), memory: &peaks{}}
	if err := t.load(ctx); err != nil {
		return err
	}
	return t.judge(ctx)
}

// trial is one run.
type trial struct {
	cfg     config
	out     io.Writer
	shop    *workload.Shop
	journal *journal.Writer
	wire    *workload.Wire
	clients *workload.Clients
	lost    time.Time // when Redis lost its stream; zero: never
	memory  *peaks
}

// load takes the steps while clients shop, and shows what they noticed of each.
func (t *trial) load(ctx context.Context) error {
	shopping, stop := context.WithCancel(ctx)
	shopped := make(chan struct{})
	go func() { defer close(shopped); t.clients.Steady(shopping, t.cfg.Rate) }()
	watched := make(chan struct{})
	go func() { defer close(watched); t.memory.watch(shopping) }()
	defer func() { stop(); <-shopped; <-watched }()

	_ = wait.Pause(ctx, settle)
	fmt.Fprint(t.out, header)
	for _, s := range t.steps() {
		from := time.Since(t.wire.Began)
		if err := s.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		_ = wait.Pause(ctx, settle)
		fmt.Fprintln(t.out, noticed(s.name, t.journal.Attempts(), from, time.Since(t.wire.Began)))
	}
	return ctx.Err()
}

// judge has clients finish their requests, and then compares what they saw with the books.
func (t *trial) judge(ctx context.Context) error {
	finishing, cancel := context.WithTimeout(ctx, finishTimeout)
	defer cancel()
	t.clients.Finish(finishing, true)
	held, err := t.read(ctx)
	if err != nil {
		return err
	}
	attempts := t.journal.Attempts()
	fmt.Fprintf(t.out, "\n%s\n%s\n", retried(attempts), t.memory)
	fmt.Fprintf(t.out, "%d attempts, %d keys; %d orders, %d payments, %d charges\n",
		len(attempts), len(verify.History(attempts)), len(held.Orders), len(held.Payments), len(held.Charges))
	violations := verify.All(attempts, held, patience)
	for _, v := range violations {
		fmt.Fprintln(t.out, v)
	}
	fmt.Fprintf(t.out, "violations: %d\n", len(violations))
	if len(violations) > 0 {
		return errBroken
	}
	return nil
}

// read reads the books when nothing is left to do, or when it is time to say what is left.
func (t *trial) read(ctx context.Context) (held books.Books, err error) {
	reader := books.Reader{DatabaseURL: t.cfg.DB, RedisAddr: t.cfg.Redis, ProviderURL: t.cfg.PSP, APIKeys: t.shop.Accounts, Opening: t.shop.Opening}
	if !t.lost.IsZero() {
		reader.Lost, reader.Since = []books.Stream{{}}, t.lost
	}
	for deadline := time.Now().Add(booksTimeout); ; _ = wait.Pause(ctx, time.Second) {
		held, err = reader.Read(ctx)
		if err != nil || len(books.Unfinished(held)) == 0 && held.Consumed() || time.Now().After(deadline) {
			return held, err
		}
	}
}
