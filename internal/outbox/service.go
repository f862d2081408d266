package outbox

import (
	"context"
	"sync"
)

// service is a goroutine that is started once and stopped any number of times.
type service struct {
	mu     sync.Mutex
	cancel context.CancelFunc
	done   chan struct{} // nil before the start
}

func (s *service) start(ctx context.Context, run func(context.Context)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done != nil {
		return
	}
	ctx, s.cancel = context.WithCancel(ctx)
	s.done = make(chan struct{})
	go func() {
		defer close(s.done)
		run(ctx)
	}()
}

func (s *service) stop() {
	s.mu.Lock()
	cancel, done := s.cancel, s.done
	s.mu.Unlock()
	if done == nil {
		return
	}
	cancel()
	<-done
}
