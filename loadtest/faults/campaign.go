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
	"sync/atomic"
	"time"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/faults/nemesis"
	"github.com/oncepay/oncepay/loadtest/faults/verify"
	"github.com/oncepay/oncepay/loadtest/faults/witness"
	"github.com/oncepay/oncepay/loadtest/faults/workload"
)

const (
	// warmUp is before the first fault, so that there is something to hurt, and a baseline to come back to.
	warmUp = 5 * time.Second
	// quiet is longer than a lease and what it takes to give up idle work, so that whatever is left over is left over for good.
	quiet = nemesis.Lease + 5*time.Second
	// patience bounds the check of one key's history.
	patience = 10 * time.Second
	// healTries are for a service that another fault keeps from starting.
	healTries = 3
)

var accounts = []string{"sk_test_demo", "sk_test_other"}

// injury is a fault as it happened.
type injury struct {
	Name      string        `json:"name"`
	Kind      string        `json:"kind"`
	Injected  time.Duration `json:"injected"` // since the campaign began
	Held      time.Duration `json:"held"`     // from here on it hurt
	Healing   time.Duration `json:"healing"`  // until here at least
	Healed    time.Duration `json:"healed"`
	Recovered time.Duration `json:"recovered"`      // when every door answered again; 0: there was no look
	InFlight  int           `json:"in_flight"`      // requests that it overlapped
	Hits      *int          `json:"hits,omitempty"` // how often it met something, where that is counted
	Death     *death        `json:"death,omitempty"`
	Appointed time.Duration `json:"appointed,omitempty"` // how long Sentinel took to find the master gone and to appoint another
	Loses     bool          `json:"loses,omitempty"`     // Redis lost its data
	NotFired  bool          `json:"not_fired,omitempty"`
}

type campaign struct {
	cfg      config
	out      io.Writer
	stack    *stack.Stack
	target   nemesis.Target
	file     *os.File
	journal  *journal.Writer
	wire     *workload.Wire
	shop     *workload.Shop
	versions versions
	clients  *workload.Clients
	witness  *witness.Witness // nil where Redis is more than one

	phase      atomic.Value // string, for the progress
	probes     atomic.Int64 // that were made
	losses     losses
	injuries   []injury
	count      atomic.Int64
	baseline   map[string]usage
	books      verify.Books
	unfinished []verify.Violation // by the system alone, while nobody asked
	violations []verify.Violation
	score      verify.Score
	stopped    time.Duration // when the clients stopped
}

func newCampaign(ctx context.Context, cfg config, st *stack.Stack, out io.Writer) (*campaign, error) {
	c := &campaign{cfg: cfg, out: out, stack: st, target: nemesis.Target{Stack: st, Sentinel: cfg.Redis == stack.Sentinel, Ops: map[string]string{
		stack.API1: fmt.Sprintf("127.0.0.1:%d", 9081+cfg.Offset), stack.API2: fmt.Sprintf("127.0.0.1:%d", 9082+cfg.Offset)}}}
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
	doors := map[string]string{"nginx": st.URL(), "api-1": "http://" + st.Addr(stack.API1), "api-2": "http://" + st.Addr(stack.API2)}
	c.wire = workload.NewWire(doors, c.journal)
	c.losses.since = time.Now()
	c.clients = workload.NewClients(c.wire, c.shop, cfg.Seed, cfg.Clients)
	return c, nil
}

func (c *campaign) name() string {
	if c.cfg.other() {
		return fmt.Sprintf("%s-%d", c.cfg.System, c.cfg.Seed)
	}
	return fmt.Sprintf("faults-%d", c.cfg.Seed)
}

func (c *campaign) elapsed() time.Duration { return time.Since(c.wire.Began) }

// run is the whole campaign: shop, hurt, heal, settle, be quiet, judge.
func (c *campaign) run(ctx context.Context) error {
	defer c.wire.Close()
	stopProgress := c.showProgress()
	defer stopProgress()
	shopping, stopShopping := context.WithCancel(ctx)
	defer stopShopping()
	shopped := make(chan struct{})
	go func() { defer close(shopped); c.clients.Run(shopping) }()

	c.enter("warm-up")
	wait(ctx, warmUp)
	c.baseline = c.measure(ctx)
	hurtErr := c.hurt(ctx)
	stopShopping()
	c.enter("last answers")
	<-shopped
	c.stopped = c.elapsed()
	if err := errors.Join(hurtErr, ctx.Err()); err != nil {
		return err
	}
	c.enter("settling")
	settling, cancel := context.WithTimeout(ctx, c.cfg.Patience)
	c.clients.Settle(settling, false)
	cancel()
	c.enter("quiet")
	wait(ctx, quiet)
	if err := c.awaitReconciled(ctx); err != nil {
		return err
	}
	c.enter("those who walked away come back")
	settling, cancel = context.WithTimeout(ctx, c.cfg.Patience)
	c.clients.Settle(settling, true)
	cancel()
	c.enter("judging")
	if err := c.judge(ctx); err != nil {
		return err
	}
	return errors.Join(c.journal.Close(), c.file.Close(), ctx.Err())
}

func (c *campaign) enter(phase string) { c.phase.Store(phase) }

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// hurt injects and heals until the time is over.
func (c *campaign) hurt(ctx context.Context) error {
	scheduler, err := nemesis.NewScheduler(c.target, c.cfg.Seed, c.cfg.Nemeses...)
	if err != nil {
		return err
	}
	for end := c.elapsed() + c.cfg.Duration; c.elapsed() < end && ctx.Err() == nil; {
		if err := c.strike(ctx, scheduler.Draw()); err != nil {
			return err
		}
		c.enter("between faults")
		wait(ctx, scheduler.Pause(c.cfg.Shortest, c.cfg.Longest))
	}
	return c.startAll(ctx)
}

// strike injects faults side by side, holds them, heals them and waits until the service is back.
func (c *campaign) strike(ctx context.Context, faults []*nemesis.Fault) error {
	first := len(c.injuries)
	watch := c.watchDeath(ctx, faults)
	if err := c.inject(ctx, faults); err != nil {
		return err
	}
	watch.begin(ctx, faults[0].Died)
	held := c.elapsed()
	hold := slices.MaxFunc(faults, func(a, b *nemesis.Fault) int { return cmp.Compare(a.Hold, b.Hold) }).Hold
	wait(ctx, hold)
	healing := c.elapsed()
	// Also after Ctrl-C: whoever looks at a stack that was kept wants it whole.
	if err := c.heal(context.WithoutCancel(ctx), faults); err != nil {
		return err
	}
	healed := c.elapsed()
	c.enter("recovering")
	recovered := c.awaitService(ctx)
	measured := watch.end()
	for n, f := range faults {
		i := &c.injuries[first+n]
		i.Held, i.Healing, i.Healed, i.Recovered, i.Appointed = held, healing, healed, recovered, f.Appointed
		if f.Counts {
			i.Hits = &f.Hits
		}
		if !i.NotFired {
			i.Death = measured
		}
	}
	if !loses(faults) {
		return nil
	}
	return c.replay(ctx, c.injuries[first].Injected)
}

func (c *campaign) inject(ctx context.Context, faults []*nemesis.Fault) error {
	for _, f := range faults {
		f.Prepare(ctx)
	}
	for _, f := range faults {
		c.enter(f.Name)
		if f.Loses {
			if err := c.keepStream(ctx); err != nil {
				return err
			}
		}
		i := injury{Name: f.Name, Kind: f.Kind, Loses: f.Loses, Injected: c.elapsed()}
		if err := f.Inject(ctx); err != nil {
			// Beside another fault it may be impossible: what is dead can't be paused. It then hurts nobody, and does not count.
			if !errors.Is(err, nemesis.ErrNotFired) && len(faults) == 1 {
				return err
			}
			i.NotFired = true
		}
		c.injuries = append(c.injuries, i)
		c.count.Add(1)
	}
	return nil
}

func (c *campaign) heal(ctx context.Context, faults []*nemesis.Fault) error {
	faults = slices.SortedStableFunc(slices.Values(faults), func(a, b *nemesis.Fault) int { return a.Rank() - b.Rank() })
	var err error
	for range healTries {
		err = nil
		for _, f := range faults {
			err = errors.Join(err, ignoreNotRunning(f.Heal(ctx)))
		}
		if err == nil {
			return c.startAll(ctx) // one that died of something else, such as a failpoint that fired late
		}
	}
	return err
}

// ignoreNotRunning: a paused process that another fault killed can't be resumed, and startAll starts it.
func ignoreNotRunning(err error) error {
	if err != nil && errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// startAll starts whatever does not run.
func (c *campaign) startAll(ctx context.Context) error {
	services, _, err := c.stack.Status(ctx)
	for _, service := range services {
		if service.State == "stopped" {
			err = errors.Join(err, c.stack.Do(ctx, "start", service.Name))
		}
		if service.State == "paused" {
			err = errors.Join(err, c.stack.Do(ctx, "resume", service.Name))
		}
	}
	return err
}
