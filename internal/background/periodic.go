package background

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"
)

// passTimeout bounds one pass. It is longer than the slowest one, which asks the provider between
// two transactions, so it ends only a pass that hangs.
const passTimeout = 2 * time.Minute

// Schedule says how often a periodic service looks for work, and how much work one pass takes. Each
// service has its own default for what is zero.
type Schedule struct {
	Interval time.Duration // the mean time between two passes when there is nothing to do
	Batch    int
	// Rest is for how long a service rests after a pass that did something, as a multiple of what
	// the pass took: with 9 it uses a tenth of a connection at most, however much there is to do.
	Rest int
	Log  *slog.Logger // nil: slog.Default
}

// Or fills in what is not set.
func (s Schedule) Or(interval time.Duration, batch int) Schedule {
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

// Pass does a part of a service's work. It returns how many things it did.
type Pass func(context.Context) (n int, err error)

// Periodic repeats a pass in the background: while there is work after a rest, otherwise after the
// interval with random jitter, so that replicas that were started together do not work in step. A
// failed pass is logged and tried again after the interval. It is safe for concurrent use.
type Periodic struct {
	task     Task
	name     string
	schedule Schedule
	pass     Pass
}

// NewPeriodic returns a service that is not started yet. The schedule must be complete, see
// [Schedule.Or]. The name is for the log.
func NewPeriodic(name string, schedule Schedule, pass Pass) *Periodic {
	return &Periodic{name: name, schedule: schedule, pass: pass}
}

// Start runs the service until Stop is called or the context ends. It returns at once. Starting
// again does nothing.
func (p *Periodic) Start(ctx context.Context) { p.task.Start(ctx, p.run) }

// Stop interrupts the current pass and waits until it has returned. See [Task.Stop].
func (p *Periodic) Stop() { p.task.Stop() }

func (p *Periodic) run(ctx context.Context) {
	for wait := rand.N(p.schedule.Interval); Sleep(ctx, wait); wait = p.runPass(ctx) {
	}
}

// runPass returns the time to wait for the next pass.
func (p *Periodic) runPass(ctx context.Context) time.Duration {
	bounded, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	began := time.Now()
	n, err := p.pass(bounded)
	if err != nil && ctx.Err() == nil {
		p.schedule.Log.ErrorContext(ctx, "background pass failed", "service", p.name, "done", n, "error", err)
	}
	if err == nil && n > 0 {
		return time.Since(began) * time.Duration(p.schedule.Rest) // there may be more
	}
	return p.schedule.Interval/2 + rand.N(p.schedule.Interval)
}

// Sleep waits. It returns false when the context has ended.
func Sleep(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
