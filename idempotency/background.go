package idempotency

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

const (
	// maxBackground limits the steps that outlive their requests. More of them at once mean
	// that the store is down, and leases end by themselves.
	maxBackground = 64
	// firstRepeat and lastRepeat limit the growing pause before such a step is repeated.
	firstRepeat = 100 * time.Millisecond
	lastRepeat  = 2 * time.Second
)

// background takes steps at the store that outlive their requests, and may fail: the end of
// the lease has the same effect.
type background struct {
	log     *slog.Logger
	slots   chan struct{}
	running sync.WaitGroup
	closing chan struct{}
	once    sync.Once
}

func (b *background) init(log *slog.Logger) {
	b.log, b.slots, b.closing = log, make(chan struct{}, maxBackground), make(chan struct{})
}

// start takes a step, and repeats it until it succeeds or the time is up. The zero time
// stands for no repetition.
func (b *background) start(ctx context.Context, until time.Time, step func(context.Context) error) {
	select {
	case b.slots <- struct{}{}:
	default:
		return
	}
	b.running.Go(func() {
		defer func() { <-b.slots }()
		if err := b.repeat(ctx, until, step); err != nil && !errors.Is(err, ErrLost) {
			b.log.DebugContext(ctx, "idempotency: a step in the background failed", "error", err)
		}
	})
}

func (b *background) repeat(ctx context.Context, until time.Time, step func(context.Context) error) error {
	for pause := firstRepeat; ; pause = min(2*pause, lastRepeat) {
		err := detached(ctx, step)
		if err == nil || errors.Is(err, ErrLost) || errors.Is(err, ErrCorrupt) || time.Now().Add(pause).After(until) {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-b.closing:
			timer.Stop()
			return err
		case <-timer.C:
		}
	}
}

// wait ends all repetitions, and returns when the last step has ended.
func (b *background) wait() {
	b.once.Do(func() { close(b.closing) })
	b.running.Wait()
}
