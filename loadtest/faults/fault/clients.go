package fault

import (
	"context"
	"fmt"
	"sync"
)

var clientKinds = []Kind{
	{Name: "overload", Victim: Clients, Breaks: []Damage{Overloads}, draw: (*Scheduler).overload},
	{Name: "retry storm", Victim: Clients, Breaks: []Damage{Overloads}, draw: (*Scheduler).retryStorm},
}

// How many clients there are more, without pauses: far more than the replicas can serve.
const crowd, storm = 300, 150

// overload has a crowd order while it lasts.
func (s *Scheduler) overload() *Run { return s.gathering(s.target.Crowd, crowd) }

// retryStorm has clients repeat their orders while it lasts.
func (s *Scheduler) retryStorm() *Run { return s.gathering(s.target.Storm, storm) }

// gathering counts the requests.
func (s *Scheduler) gathering(gather func(context.Context, string, int) int, size int) *Run {
	r := &Run{Counts: true}
	name := fmt.Sprint(s.random.Uint32())
	var group sync.WaitGroup
	stop := func() {}
	r.inject = func(ctx context.Context) error {
		var gathered context.Context
		gathered, stop = context.WithCancel(ctx) //nolint:gosec // heal calls stop
		group.Go(func() { r.Hits += gather(gathered, name, size) })
		return nil
	}
	r.heal = func(context.Context) error {
		stop()
		group.Wait()
		return nil
	}
	return r
}
