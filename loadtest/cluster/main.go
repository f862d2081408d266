// Command cluster is the measured part of task kubernetes:try: clients order and pay at a steady
// rate while a step after the other replaces, kills and takes away parts of the cluster. It writes
// what the clients noticed of each step (scripts/kubernetes/step.sh), and compares every answer
// with the books. It runs on the node (scripts/kubernetes/node.sh), which says where services are.
//
//	cluster          a rolling update, and a replica's death
//	cluster --all    every step; ten minutes
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/oncepay/oncepay/internal/wait"
	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
	"github.com/oncepay/oncepay/loadtest/faults/workload"
	"github.com/oncepay/oncepay/loadtest/shop"
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
	opened, err := workload.OpenShop(ctx, url, []string{"sk_test_demo"})
	if err != nil {
		return err
	}
	// One address for all: the Service chooses the replica.
	wire := workload.NewWire(map[string]string{"nginx": url, "api-1": url, "api-2": url}, journal.NewWriter(io.Discard))
	defer wire.Close()
	t := &trial{wire: wire, clients: workload.NewClients(wire, opened, 1, 1), reader: books.Reader{
		DatabaseURL: os.Getenv("DATABASE_URL"), RedisAddr: os.Getenv("REDIS_ADDR"), ProviderURL: os.Getenv("PSP_URL"),
		APIKeys: opened.Accounts, Opening: opened.Opening,
	}}
	if err := t.load(ctx, all); err != nil {
		return err
	}
	return t.judge(ctx)
}

// step changes the cluster.
type step struct {
	name    string
	command string // of scripts/kubernetes/step.sh
	extra   int    // so many more orders a second meanwhile
}

// few are the steps without --all.
const few = 2

var steps = []step{
	{"rolling update", "update", 0},
	{"`kill -9` of a replica", "kill", 0},
	{"`kubectl delete --force` of a replica", "delete", 0},
	{"`kubectl drain` of the node", "drain", 0},
	{"PostgreSQL replaced", "replace statefulset/postgres", 0},
	{"PostgreSQL away for a minute", "away statefulset/postgres", 0},
	{"Redis replaced", "replace deployment/redis", 0},
	{"Redis away for a minute", "away deployment/redis", 0},
	{fmt.Sprintf("%d orders a second until there are four replicas", limit), "grow", limit},
	{"rolling update of these four, at the same rate", "update", limit},
}

// trial is one run.
type trial struct {
	wire    *workload.Wire
	clients *workload.Clients
	reader  books.Reader
}

// load takes the steps while clients shop, and shows what they noticed of each.
func (t *trial) load(ctx context.Context, all bool) error {
	defer shop.Beside(ctx, func(ctx context.Context) { t.clients.Steady(ctx, rate) })()
	_ = wait.Pause(ctx, settle)
	fmt.Print(header)
	for i, s := range steps {
		if i == few && !all {
			break
		}
		from := time.Since(t.wire.Began)
		if err := t.take(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		_ = wait.Pause(ctx, settle)
		fmt.Println(noticed(s.name, t.wire.Journal.Attempts(), from, time.Since(t.wire.Began)))
	}
	return ctx.Err()
}

// take takes a step, and waits until the cluster is whole again.
func (t *trial) take(ctx context.Context, s step) error {
	if s.extra > 0 {
		defer shop.Beside(ctx, func(ctx context.Context) { t.clients.Steady(ctx, s.extra) })()
	}
	pod := "" // that has answered last
	for _, a := range t.wire.Journal.Attempts() {
		pod = cmp.Or(a.Replica, pod)
	}
	cmd := exec.CommandContext(ctx, "scripts/kubernetes/step.sh", strings.Fields(s.command)...)
	cmd.Env = append(os.Environ(), "POD="+pod)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	if strings.HasSuffix(s.command, "redis") { // events of before may not be in its stream
		t.reader.Lost, t.reader.Since = []books.Stream{{}}, time.Now()
	}
	return nil
}

// judge has clients finish their requests, and then compares what they saw with the books.
func (t *trial) judge(ctx context.Context) error {
	t.clients.Finish(ctx, finishTimeout, true)
	held, err := t.reader.Await(ctx, booksTimeout, func(b books.Books) bool { return len(books.Unfinished(b)) == 0 && b.Consumed() })
	if err != nil {
		return err
	}
	attempts := t.wire.Journal.Attempts()
	fmt.Printf("\n%s\n%d attempts, %d keys; %d orders, %d payments, %d charges\n", retried(attempts),
		len(attempts), len(verify.History(attempts)), len(held.Orders), len(held.Payments), len(held.Charges))
	violations := verify.All(attempts, held, patience)
	for _, v := range violations {
		fmt.Println(v)
	}
	fmt.Printf("violations: %d\n", len(violations))
	if len(violations) > 0 {
		return errors.New("promises were broken")
	}
	return nil
}
