// Command cluster is the measured part of task kubernetes:try: clients order and pay at a steady
// rate while a step after the other replaces, kills and takes away parts of the cluster. It writes
// what the clients noticed of each step, and compares every answer with the books. It runs on the
// node (scripts/kubernetes/node.sh), which says where the services are, with kubectl and ctr on its
// PATH.
//
//	cluster          a rolling update, and a replica's death
//	cluster --all    every step; ten minutes
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/oncepay/oncepay/internal/wait"
	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
	"github.com/oncepay/oncepay/loadtest/faults/workload"
)

const (
	// rate is how many orders a second there are; every second one is paid. So many more come while
	// the autoscaler works.
	rate, limit = 50, 300
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

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, slices.Contains(os.Args[1:], "--all")); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, all bool) error {
	url := os.Getenv("BASE_URL")
	shop, err := workload.OpenShop(ctx, url, []string{"sk_test_demo"})
	if err != nil {
		return err
	}
	j := journal.NewWriter(io.Discard)
	// One address for all: the Service chooses the replica.
	wire := workload.NewWire(map[string]string{"nginx": url, "api-1": url, "api-2": url}, j)
	defer wire.Close()
	t := &trial{journal: j, wire: wire, clients: workload.NewClients(wire, shop, 1, 1), memory: map[string]int64{}, reader: books.Reader{
		DatabaseURL: os.Getenv("DATABASE_URL"), RedisAddr: os.Getenv("REDIS_ADDR"), ProviderURL: os.Getenv("PSP_URL"),
		APIKeys: shop.Accounts, Opening: shop.Opening,
	}}
	if err := t.load(ctx, all); err != nil {
		return err
	}
	return t.judge(ctx)
}

// trial is one run.
type trial struct {
	journal *journal.Writer
	wire    *workload.Wire
	clients *workload.Clients
	reader  books.Reader
	memory  map[string]int64 // the most that a container used, by its name
}

// load takes the steps while clients shop, and shows what they noticed of each.
func (t *trial) load(ctx context.Context, all bool) error {
	shopping, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	group.Go(func() { t.clients.Steady(shopping, rate) })
	group.Go(func() { t.watchMemory(shopping) })

	_ = wait.Pause(ctx, settle)
	fmt.Print(header)
	for _, s := range t.steps(all) {
		from := time.Since(t.wire.Began)
		if err := t.take(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		_ = wait.Pause(ctx, settle)
		fmt.Println(noticed(s.name, t.journal.Attempts(), from, time.Since(t.wire.Began)))
	}
	return ctx.Err()
}

// take takes a step, and waits until the cluster is whole again.
func (t *trial) take(ctx context.Context, s step) error {
	more, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	if s.busy {
		group.Go(func() { t.clients.Steady(more, limit) })
	}
	err := then(s.do, whole)(ctx)
	if s.losesRedis { // events of before may not be in its stream
		t.reader.Lost, t.reader.Since = []books.Stream{{}}, time.Now()
	}
	return err
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
	fmt.Printf("\n%s\nmost memory of a container:", retried(attempts))
	for _, name := range []string{"oncepay", "postgres", "redis", "pspsim"} {
		fmt.Printf(" %s %d MiB", name, t.memory[name]>>20)
	}
	fmt.Printf("\n%d attempts, %d keys; %d orders, %d payments, %d charges\n",
		len(attempts), len(verify.History(attempts)), len(held.Orders), len(held.Payments), len(held.Charges))
	violations := verify.All(attempts, held, patience)
	for _, v := range violations {
		fmt.Println(v)
	}
	fmt.Printf("violations: %d\n", len(violations))
	if len(violations) > 0 {
		return errBroken
	}
	return nil
}

// read reads the books when nothing is left to do, or when it is time to say what is left.
func (t *trial) read(ctx context.Context) (books.Books, error) {
	for deadline := time.Now().Add(booksTimeout); ; _ = wait.Pause(ctx, time.Second) {
		held, err := t.reader.Read(ctx)
		if err != nil || len(books.Unfinished(held)) == 0 && held.Consumed() || time.Now().After(deadline) {
			return held, err
		}
	}
}
