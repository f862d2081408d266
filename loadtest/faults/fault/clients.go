package fault

import (
	"context"
	"fmt"
	"sync"
)

var clientKinds = []Kind{
	{Name: "overload", Victim: Clients, draw: (*Scheduler).overload},
}

// crowd is how many clients order at once without pauses: far more than the replicas can serve.
const crowd = 300

// overload has a crowd order while it lasts. It counts the orders.
func (s *Scheduler) overload() *Run {
	r := &Run{Counts: true}
	name := fmt.Sprint(s.random.Uint32())
	var group sync.WaitGroup
	stop := func() {}
	r.inject = func(ctx context.Context) error {
		var crowding context.Context
		crowding, stop = context.WithCancel(ctx) //nolint:gosec // heal calls stop
		group.Go(func() { r.Hits += s.target.Crowd(crowding, name, crowd) })
		return nil
	}
	r.heal = func(context.Context) error {
		stop()
		group.Wait()
		return nil
	}
	return r
}
