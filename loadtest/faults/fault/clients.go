package fault

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/oncepay/oncepay/internal/stack"
)

var clientKinds = []Kind{
	{Name: "overload", Victim: Clients, Breaks: []Damage{Overloads}, draw: (*Scheduler).overload},
	{Name: "retry storm", Victim: Clients, Breaks: []Damage{Overloads}, draw: (*Scheduler).retryStorm},
	{Name: "slow payments", Victim: Clients, Breaks: []Damage{PaymentsWait}, draw: (*Scheduler).slowPayments},
	{Name: "unfinished requests", Victim: Clients, Breaks: []Damage{StaysUnfinished}, draw: (*Scheduler).unfinishedRequests},
	{Name: "greedy account", Victim: Clients, Breaks: []Damage{AccountFloods}, draw: (*Scheduler).greedyAccount},
	{Name: "flood of strangers", Victim: Clients, Breaks: []Damage{StrangersFlood}, draw: (*Scheduler).floodOfStrangers},
	{Name: "flash sale", Victim: Clients, draw: (*Scheduler).flashSale},
}

const (
	// crowd is how many clients order at once without pauses: far more than the replicas can serve.
	crowd = 300
	// storm is how many clients repeat what they sent without pauses.
	storm = 150
	// payers is how many pay at once with a card that takes the provider long: far more than the
	// database connections of a replica, and more than the places in which one account may wait.
	payers = 220
	// payersStay is how long they do: until most of them have paid twice.
	payersStay = 6 * time.Second
	// unfinished is how many requests never arrive whole: more than nginx lets through, of each of
	// the two kinds that it counts.
	unfinished = 2400
	// unfinishedStay is shorter than nginx waits for the rest of a body.
	unfinishedStay = 5 * time.Second
	// greedy is how many clients of one account order at once without pauses, past nginx.
	greedy = 300
	// strangers is how many connections with unknown API keys there are.
	strangers = 300
	// floodStay is how long both last: until the others have sent enough requests to judge by.
	floodStay = 6 * time.Second
	// buyers is how many want one of the few units of a sale: enough that their orders overlap.
	buyers = 60
)

// overload has a crowd order while it lasts.
func (s *Scheduler) overload() *Run { return s.gathering(s.target.Crowd, crowd) }

// retryStorm has clients repeat their orders while it lasts.
func (s *Scheduler) retryStorm() *Run { return s.gathering(s.target.Storm, storm) }

// slowPayments has many clients pay slowly at one replica while it lasts, and as many pay quickly
// at the other one.
func (s *Scheduler) slowPayments() *Run {
	one := s.random.IntN(len(stack.Replicas))
	r := s.gathering(func(ctx context.Context, name string, size int) int {
		bystanders := make(chan int, 1)
		go func() {
			bystanders <- s.target.PayQuickly(ctx, name+"-bystander", stack.Replicas[1-one], size)
		}()
		return s.target.Pay(ctx, name, stack.Replicas[one], size) + <-bystanders
	}, payers)
	r.Hold = payersStay
	return r
}

// unfinishedRequests has clients without an API key send half of a request while it lasts.
func (s *Scheduler) unfinishedRequests() *Run {
	r := s.gathering(func(ctx context.Context, _ string, size int) int { return s.target.LeaveUnfinished(ctx, size) }, unfinished)
	r.Hold = unfinishedStay
	return r
}

// greedyAccount has clients of one account order while it lasts.
func (s *Scheduler) greedyAccount() *Run {
	r := s.gathering(s.target.Flood, greedy)
	r.Hold = floodStay
	return r
}

// floodOfStrangers has clients with unknown API keys send requests while it lasts.
func (s *Scheduler) floodOfStrangers() *Run {
	r := s.gathering(func(ctx context.Context, _ string, size int) int { return s.target.Knock(ctx, size) }, strangers)
	r.Hold = floodStay
	return r
}

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

// flashSale has many buyers order the few units of a product at once. It counts those who were told
// whether they got one.
func (s *Scheduler) flashSale() *Run {
	r := &Run{Counts: true, victims: []string{stack.Postgres}}
	name := fmt.Sprint(s.random.Uint32())
	var group sync.WaitGroup
	r.prepare = func(ctx context.Context) error { return s.target.OpenSale(ctx, name) }
	r.inject = func(ctx context.Context) error {
		group.Go(func() { r.Hits += s.target.Sell(ctx, name, buyers) })
		return nil
	}
	r.heal = func(context.Context) error {
		group.Wait()
		return nil
	}
	return r
}
