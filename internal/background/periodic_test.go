package background

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// recorder is a pass that records when it ran and returns what answer says.
type recorder struct {
	mu      sync.Mutex
	started []time.Time
	answer  func(pass int) (int, error)
}

func (r *recorder) pass(context.Context) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.started = append(r.started, time.Now())
	return r.answer(len(r.started))
}

func (r *recorder) passes() []time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.started
}

// newPeriodic returns a service with an interval of a minute, and its log.
func newPeriodic(pass func(context.Context) (int, error)) (*Periodic, *bytes.Buffer) {
	log := new(bytes.Buffer)
	schedule := Schedule{Log: slog.New(slog.NewTextHandler(log, nil))}
	return NewPeriodic("test", schedule.Or(time.Minute, 1), pass), log
}

func TestPeriodic_RunsAtTheIntervalWithJitter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{answer: func(int) (int, error) { return 0, nil }}
		p, _ := newPeriodic(r.pass)
		started := time.Now()
		p.Start(t.Context())
		p.Start(t.Context()) // does nothing
		time.Sleep(1000 * time.Minute)
		p.Stop()

		passes := r.passes()
		require.InDelta(t, 1000, len(passes), 100)
		require.Less(t, passes[0].Sub(started), time.Minute)
		waits := map[time.Duration]bool{}
		for i := 1; i < len(passes); i++ {
			wait := passes[i].Sub(passes[i-1])
			require.GreaterOrEqual(t, wait, 30*time.Second)
			require.Less(t, wait, 90*time.Second)
			waits[wait] = true
		}
		require.Greater(t, len(waits), 500, "two replicas do not work in step")
	})
}

func TestPeriodic_RunsAgainAtOnceWhileThereIsWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{answer: func(pass int) (int, error) { return max(0, 5-pass), nil }}
		p, _ := newPeriodic(r.pass)
		p.Start(t.Context())
		time.Sleep(time.Minute + time.Second)
		p.Stop()
		passes := r.passes()
		require.GreaterOrEqual(t, len(passes), 5)
		require.Equal(t, passes[0], passes[4])
	})
}

func TestPeriodic_RestsAfterWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{answer: func(int) (int, error) { return 1, nil }}
		p := NewPeriodic("test", Schedule{Rest: 9}.Or(time.Minute, 1), func(ctx context.Context) (int, error) {
			defer time.Sleep(10 * time.Millisecond)
			return r.pass(ctx)
		})
		p.Start(t.Context())
		time.Sleep(2 * time.Minute)
		p.Stop()
		passes := r.passes()
		require.Greater(t, len(passes), 500)
		for i := 1; i < len(passes); i++ {
			require.Equal(t, 100*time.Millisecond, passes[i].Sub(passes[i-1]))
		}
	})
}

func TestPeriodic_LogsAFailedPassAndTriesAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{answer: func(int) (int, error) { return 1, errors.New("the database is away") }}
		p, log := newPeriodic(r.pass)
		p.Start(t.Context())
		time.Sleep(100 * time.Minute)
		p.Stop()
		require.InDelta(t, 100, len(r.passes()), 30)
		require.Contains(t, log.String(), "the database is away")
		require.Contains(t, log.String(), "service=test")
	})
}

func TestPeriodic_BoundsAPass(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		p, _ := newPeriodic(func(ctx context.Context) (int, error) {
			<-ctx.Done()
			ended <- ctx.Err()
			return 0, nil
		})
		p.Start(t.Context())
		require.ErrorIs(t, <-ended, context.DeadlineExceeded)
		p.Stop()
	})
}

func TestPeriodic_StopInterruptsThePassAndWaitsForIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		running, ended := make(chan struct{}), false
		p, log := newPeriodic(func(ctx context.Context) (int, error) {
			close(running)
			<-ctx.Done()
			time.Sleep(time.Second) // it cleans up
			ended = true
			return 0, ctx.Err()
		})
		p.Stop() // not started yet
		p.Start(t.Context())
		<-running
		var group sync.WaitGroup
		for range 2 {
			group.Go(func() {
				p.Stop()
				require.True(t, ended)
			})
		}
		group.Wait()
		p.Stop()
		require.Empty(t, log.String(), "being stopped is no failure")
	})
}

func TestPeriodic_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{answer: func(int) (int, error) { return 1, nil }}
		ctx, cancel := context.WithCancel(t.Context())
		p, _ := newPeriodic(r.pass)
		cancel()
		p.Start(ctx)
		<-p.task.done
		require.Empty(t, r.passes())
		p.Stop()
	})
}
