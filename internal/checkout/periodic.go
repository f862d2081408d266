package checkout

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

// passTimeout bounds one pass: longer than the slowest one takes, which asks the
// provider between two transactions, so it only ends what hangs.
const passTimeout = 2 * time.Minute

// Schedule says how often a background service looks for work, and how much of
// it one pass takes on. What is zero has the service's default.
type Schedule struct {
	Interval time.Duration // the mean time between two passes when there is nothing to do
	Batch    int
	Log      *slog.Logger // nil: slog.Default
}

// or fills in what is not set.
func (s Schedule) or(interval time.Duration, batch int) Schedule {
	if s.Interval <= 0 {
		s.Interval = interval
	}
	if s.Batch <= 0 {
		s.Batch = batch
	}
	if s.Log == nil {
		s.Log = slog.Default()
	}
	return s
}

// periodic runs a pass again and again in the background: at once while there is
// work, otherwise after the interval, more or less, so that replicas that were
// started together don't march in step. A failed pass is logged and tried again.
type periodic struct {
	name     string
	schedule Schedule
	pass     func(context.Context) (n int, err error)

	mu     sync.Mutex
	cancel context.CancelFunc // nil: not started
	done   chan struct{}
}

// Start runs the service in the background until Stop is called or the context
// ends. It returns at once; starting again does nothing.
func (p *periodic) Start(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cancel != nil {
		return
	}
	ctx, p.cancel = context.WithCancel(ctx)
	p.done = make(chan struct{})
	go p.run(ctx)
}

// Stop ends the service and waits for the pass under way, which is interrupted.
// It may be called twice, at once, and on a service that was never started.
func (p *periodic) Stop() {
	p.mu.Lock()
	cancel, done := p.cancel, p.done
	p.mu.Unlock()
	if cancel == nil {
		return
	}
	cancel()
	<-done
}

func (p *periodic) run(ctx context.Context) {
	defer close(p.done)
	for wait := rand.N(p.schedule.Interval); slept(ctx, wait); wait = p.runPass(ctx) {
	}
}

// runPass gives the time to wait for the next pass.
func (p *periodic) runPass(ctx context.Context) time.Duration {
	bounded, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	n, err := p.pass(bounded)
	if err != nil && ctx.Err() == nil {
		p.schedule.Log.ErrorContext(ctx, "background pass failed", "service", p.name, "done", n, "error", err)
	}
	if err == nil && n > 0 {
		return 0 // there may be more
	}
	return p.schedule.Interval/2 + rand.N(p.schedule.Interval)
}

// slept waits, and reports false when the context ended.
func slept(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
