// Package background runs what a replica does besides answering requests: tasks that are started
// once and stopped any number of times, and periodic passes on top of them.
package background

import (
	"context"
	"sync"
)

// Task is a goroutine that runs from Start until Stop, or until its context ends. The zero value is
// ready to use. It is safe for concurrent use.
type Task struct {
	mu     sync.Mutex
	cancel context.CancelFunc
	done   chan struct{} // nil before the start
}

// Start runs the function in the background and returns at once. Starting again does nothing.
func (t *Task) Start(ctx context.Context, run func(context.Context)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done != nil {
		return
	}
	ctx, t.cancel = context.WithCancel(ctx)
	t.done = make(chan struct{})
	go func() {
		defer close(t.done)
		run(ctx)
	}()
}

// Stop cancels the function's context and waits until it has returned. It may be called twice, at
// the same time, and on a task that was never started.
func (t *Task) Stop() {
	t.mu.Lock()
	cancel, done := t.cancel, t.done
	t.mu.Unlock()
	if done == nil {
		return
	}
	cancel()
	<-done
}
