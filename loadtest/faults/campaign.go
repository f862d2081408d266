package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/internal/wait"
	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/conformance"
	"github.com/oncepay/oncepay/loadtest/faults/fault"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
	"github.com/oncepay/oncepay/loadtest/faults/witness"
	"github.com/oncepay/oncepay/loadtest/faults/workload"
	"github.com/oncepay/oncepay/loadtest/report"
)

const (
	// warmUp is before the first fault, so that there is load, and a baseline to return to.
	warmUp = 5 * time.Second
	// quiet is longer than a lease and the time to give up idle work: what is left after it is a
	// leak.
	quiet = fault.Lease + 5*time.Second
	// patience bounds the check of one key's history.
	patience = 10 * time.Second
)

var accounts = []string{"sk_test_demo", "sk_test_other"}

type campaign struct {
	cfg      config
	out      io.Writer
	stack    *stack.Stack
	target   fault.Target
	file     *os.File
	journal  *journal.Writer
	wire     *workload.Wire
	shop     *workload.Shop
	versions versions
	clients  *workload.Clients
	witness  *witness.Witness // nil where Redis is more than one

	phase      atomic.Value   // string, for the progress
	probes     atomic.Int64   // probes sent so far
	lost       []books.Stream // what the event stream held before each fault that makes Redis lose its data
	lostAt     time.Time      // the last one
	runs       []faultRun
	count      atomic.Int64
	baseline   map[string]usage
	books      books.Books
	unfinished []books.Violation // what the system left open while no client retried
	violations []books.Violation
	readLate   int // keys that excuseLateReads excused
	// sameMicrosecond is how many provider events deliverAgain cleared.
	sameMicrosecond int
	score           verify.Score
	stopped         time.Duration // when the clients stopped
	generated       conformance.Report
}

func newCampaign(ctx context.Context, cfg config, st *stack.Stack, out io.Writer) (*campaign, error) {
	c := &campaign{cfg: cfg, out: out, stack: st}
	var err error
	if cfg.Redis == stack.Single {
		if c.witness, err = witness.Follow(ctx, st.Addr(stack.Redis)); err != nil {
			return nil, err
		}
	}
	if c.shop, err = workload.OpenShop(ctx, st.URL(), accounts); err != nil {
		return nil, err
	}
	if c.versions, err = readVersions(ctx, st); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cfg.Out, 0o755); err != nil {
		return nil, err
	}
	if c.file, err = os.Create(filepath.Join(cfg.Out, c.name()+".journal")); err != nil {
		return nil, err
	}
	c.journal = journal.NewWriter(c.file)
	endpoints := map[string]string{"nginx": st.URL()}
	for _, replica := range stack.Replicas {
		endpoints[replica] = "http://" + st.Addr(replica)
	}
	c.wire = workload.NewWire(endpoints, c.journal)
	c.lostAt = c.wire.Began
	c.clients = workload.NewClients(c.wire, c.shop, cfg.Seed, cfg.Clients)
	c.target = fault.Target{Stack: st, Has: cfg.has(), Base: cfg.Base, Clients: c.clients}
	return c, nil
}

func (c *campaign) name() string {
	if c.cfg.other() {
		return fmt.Sprintf("%s-%d", c.cfg.System, c.cfg.Seed)
	}
	return fmt.Sprintf("faults-%d", c.cfg.Seed)
}

func (c *campaign) elapsed() time.Duration { return time.Since(c.wire.Began) }

// run is the whole campaign: load and faults, then the clients' last retries, then what the system
// finishes alone, then the verdict.
func (c *campaign) run(ctx context.Context) error {
	defer c.wire.Close()
	defer report.Progress(c.out, func() string {
		return fmt.Sprintf("%4.0fs  faults %3d  attempts %6d  in flight %3d  %v", c.elapsed().Seconds(), c.count.Load(),
			len(c.journal.Attempts()), c.wire.InFlight(), c.phase.Load())
	})()
	if err := c.load(ctx); err != nil {
		return err
	}
	c.enter("clients finish their requests")
	c.finish(ctx, false)
	c.enter("quiet")
	_ = wait.Pause(ctx, quiet)
	if err := c.awaitReconciled(ctx); err != nil {
		return err
	}
	c.enter("clients that had left come back")
	c.finish(ctx, true)
	c.enter("verifying")
	if err := c.verify(ctx); err != nil {
		return err
	}
	return errors.Join(c.journal.Close(), c.file.Close(), ctx.Err())
}

// load has clients shop while faults run.
func (c *campaign) load(ctx context.Context) error {
	shopping, stopShopping := context.WithCancel(ctx)
	defer stopShopping()
	shopped := make(chan struct{})
	go func() { defer close(shopped); c.clients.Run(shopping) }()

	c.enter("warm-up")
	_ = wait.Pause(ctx, warmUp)
	c.baseline = c.measure(ctx)
	err := c.runFaults(ctx)
	stopShopping()
	c.enter("last answers")
	<-shopped
	c.stopped = c.elapsed()
	return errors.Join(err, ctx.Err())
}

// finish retries the requests whose end no client knows; those of clients that left only with
// everything.
func (c *campaign) finish(ctx context.Context, everything bool) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Patience)
	defer cancel()
	c.clients.Finish(ctx, everything)
}

func (c *campaign) enter(phase string) { c.phase.Store(phase) }
