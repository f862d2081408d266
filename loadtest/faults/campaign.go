package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncepay/oncepay/internal/programs"
	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/internal/wait"
	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/fault"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/faults/witness"
	"github.com/oncepay/oncepay/loadtest/faults/workload"
	"github.com/oncepay/oncepay/loadtest/report"
	"github.com/oncepay/oncepay/loadtest/shop"
)

const (
	// warmUp is before the first fault, so that there is load, and a baseline to return to.
	warmUp = 5 * time.Second
	// quiet is longer than a lease and the time to give up idle work: what is left after it is a
	// leak.
	quiet = fault.Lease + 5*time.Second
	// verdictTime bounds everything after the clients' last answers, and patience the check of one
	// product's or customer's history.
	verdictTime, patience = 15 * time.Minute, 10 * time.Second
)

var accounts = []string{"sk_test_demo", "sk_test_other"}

type campaign struct {
	result

	cfg     config
	out     io.Writer
	stack   *stack.Stack
	target  fault.Target
	file    *os.File
	journal *journal.Writer
	wire    *workload.Wire
	shop    *workload.Shop
	clients *workload.Clients
	witness *witness.Witness // sees nothing where Redis is more than one

	phase      atomic.Value   // string, for the progress
	lost       []books.Stream // what the event stream held before each fault that makes Redis lose its data
	lostAt     time.Time      // the last one
	baseline   map[string]map[string]float64
	books      books.Books
	unfinished []books.Violation // what the system left open while no client retried
}

func newCampaign(ctx context.Context, cfg config, st *stack.Stack, out io.Writer) (*campaign, error) {
	c := &campaign{cfg: cfg, out: out, stack: st, witness: &witness.Witness{}}
	c.System, c.Seed, c.Command = cfg.System, cfg.Seed, cfg.command()
	c.Counts = map[string]int{sameTime: 0, keyless: 0, unanswered: 0}
	c.Commit, c.Versions = commit(ctx), programs.Versions(ctx)
	var err error
	if c.shop, err = workload.OpenShop(ctx, st.URL(), accounts); err != nil {
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
	if cfg.Redis == stack.Single {
		if c.witness, err = witness.Follow(ctx, st.Addr(stack.Redis), c.wire.Began); err != nil {
			return nil, err
		}
	}
	c.clients = workload.NewClients(c.wire, c.shop, cfg.Seed, cfg.Clients)
	c.target = fault.Target{Stack: st, Redis: cfg.Redis, Postgres: cfg.Postgres, Base: cfg.Base, Clients: c.clients}
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
		return fmt.Sprintf("%4.0fs  attempts %6d  %v", c.elapsed().Seconds(), len(c.journal.Attempts()), c.phase.Load())
	})()
	if err := c.load(ctx); err != nil {
		return err
	}
	c.enter("clients finish their requests")
	c.clients.Finish(ctx, c.cfg.Patience, false)
	ctx, cancel := context.WithTimeout(ctx, verdictTime)
	defer cancel()
	c.enter("quiet")
	_ = wait.Pause(ctx, quiet)
	if err := c.awaitReconciled(ctx); err != nil {
		return err
	}
	c.enter("clients that had left come back")
	c.clients.Finish(ctx, c.cfg.Patience, true)
	c.enter("verifying")
	if err := c.verify(ctx); err != nil {
		return err
	}
	c.conclude(c.journal.Attempts())
	return errors.Join(c.journal.Close(), c.file.Close(), ctx.Err())
}

// load has clients shop while faults run.
func (c *campaign) load(ctx context.Context) error {
	stopShopping := shop.Beside(ctx, c.clients.Run)
	c.enter("warm-up")
	_ = wait.Pause(ctx, warmUp)
	c.baseline = c.measure(ctx)
	err := c.runFaults(ctx)
	c.enter("last answers")
	stopShopping()
	c.Duration = c.elapsed()
	return errors.Join(err, ctx.Err())
}

func (c *campaign) enter(phase string) { c.phase.Store(phase) }

const (
	// refusals is how many clients are refused by the other replica while one is paused.
	refusals = 16
	// healTries are for a service that another fault keeps from starting.
	healTries = 3
)

// faultRun is a run of a fault as it happened. Times are since the campaign began.
type faultRun struct {
	Name      string         `json:"name"`
	Kind      string         `json:"kind"`
	Injected  time.Duration  `json:"injected"`
	Held      time.Duration  `json:"held"`      // in force from here
	Healing   time.Duration  `json:"healing"`   // to here at least
	Healed    time.Duration  `json:"healed"`    // and not after this
	Recovered time.Duration  `json:"recovered"` // when every endpoint answered again; 0: not checked
	InFlight  int            `json:"in_flight"` // requests that it overlapped
	Hits      *int           `json:"hits,omitempty"`
	Death     *death         `json:"death,omitempty"`
	Promotion time.Duration  `json:"promotion,omitempty"` // how long Sentinel took to promote the other server
	Breaks    []fault.Damage `json:"breaks,omitempty"`
	Excuses   []books.Rule   `json:"excuses,omitempty"`
	NotFired  bool           `json:"not_fired,omitempty"`
}

func (r *faultRun) breaks(damage fault.Damage) bool {
	return !r.NotFired && slices.Contains(r.Breaks, damage)
}

// met says whether the run was in force at some moment of a period.
func (r *faultRun) met(from, to time.Duration) bool { return r.Injected < to && r.Healed > from }

// Took is the time from healing until the service was back.
func (r faultRun) Took() time.Duration { return r.Recovered - r.Healed }

// runFaults injects and heals until the time is over.
func (c *campaign) runFaults(ctx context.Context) error {
	scheduler, err := fault.NewScheduler(c.target, c.cfg.Seed, c.cfg.Faults...)
	if err != nil {
		return err
	}
	for end := c.elapsed() + c.cfg.Duration; (c.elapsed() < end || !scheduler.RolledBack()) && ctx.Err() == nil; {
		if err := c.runTogether(ctx, scheduler.Draw()); err != nil {
			return err
		}
		c.enter("between faults")
		_ = wait.Pause(ctx, scheduler.Pause(c.cfg.Shortest, c.cfg.Longest))
	}
	return c.startAll(ctx)
}

// runTogether injects faults side by side, holds them, heals them and waits until the service is
// back.
func (c *campaign) runTogether(ctx context.Context, runs []*fault.Run) error {
	first := len(c.Runs)
	measured := c.watchDeath(ctx, runs)
	if err := c.inject(ctx, runs); err != nil {
		return err
	}
	held := c.elapsed()
	var refused sync.WaitGroup
	for _, run := range runs {
		if run.Pauses != "" {
			refused.Go(func() { c.clients.RefuseDuring(ctx, run.Pauses, refusals) })
		}
	}
	_ = wait.Pause(ctx, slices.MaxFunc(runs, func(a, b *fault.Run) int { return cmp.Compare(a.Hold, b.Hold) }).Hold)
	healing := c.elapsed()
	// Also after Ctrl-C: a stack that was kept for inspection should be whole.
	if err := c.heal(context.WithoutCancel(ctx), runs); err != nil {
		return err
	}
	healed := c.elapsed()
	c.enter("recovering")
	refused.Wait()
	recovered := c.awaitService(ctx)
	death := measured()
	for n, run := range runs {
		r := &c.Runs[first+n]
		r.Held, r.Healing, r.Healed, r.Recovered, r.Promotion = held, healing, healed, recovered, run.Promotion
		if run.Counts {
			r.Hits = &run.Hits
		}
		if !r.NotFired {
			r.Death = death
		}
	}
	if slices.ContainsFunc(runs, losesRedis) {
		c.lostAt = time.Now()
	}
	return nil
}

// losesRedis says that consumers may not have had what is in the event stream. The campaign repairs
// nothing: the service has to publish it again.
func losesRedis(r *fault.Run) bool { return slices.Contains(r.Breaks, fault.RedisLoses) }

func (c *campaign) inject(ctx context.Context, runs []*fault.Run) error {
	for _, run := range runs {
		run.Prepare(ctx)
	}
	for _, run := range runs {
		c.enter(run.Label)
		if losesRedis(run) {
			ids, err := read(ctx, c, books.Reader.Stream)
			if err != nil {
				return err
			}
			c.lost = append(c.lost, books.Stream{Since: c.lostAt, IDs: ids})
		}
		r := faultRun{Name: run.Label, Kind: run.Name, Breaks: run.Breaks, Excuses: run.Excuses, Injected: c.elapsed()}
		if err := run.Inject(ctx); err != nil {
			// Beside another fault it may be impossible: what is dead can't be paused. It then
			// breaks nothing, and does not count.
			if !errors.Is(err, fault.ErrNotFired) && len(runs) == 1 {
				return fmt.Errorf("inject %s: %w", run.Label, err)
			}
			r.NotFired = true
		}
		c.Runs = append(c.Runs, r)
	}
	return nil
}

func (c *campaign) heal(ctx context.Context, runs []*fault.Run) error {
	runs = slices.SortedStableFunc(slices.Values(runs), func(a, b *fault.Run) int { return a.Rank - b.Rank })
	var err error
	for range healTries {
		err = nil
		for _, run := range runs {
			// A paused process that another fault killed can't be resumed, and startAll starts it.
			if failed := run.Heal(ctx); failed != nil && !errors.Is(failed, os.ErrProcessDone) {
				err = errors.Join(err, fmt.Errorf("heal %s: %w", run.Label, failed))
			}
		}
		if err == nil {
			return c.startAll(ctx) // one that died of something else, such as a failpoint that fired late
		}
	}
	return err
}

// startAll starts whatever does not run.
func (c *campaign) startAll(ctx context.Context) error {
	services, _, err := c.stack.Status(ctx)
	for _, service := range services {
		if verb := map[string]string{"stopped": "start", "paused": "resume"}[service.State]; verb != "" {
			err = errors.Join(err, c.stack.Do(ctx, verb, service.Name))
		}
	}
	return err
}
