package fault

import (
	"context"
	"time"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/loadtest/faults/workload"
	"github.com/oncepay/oncepay/loadtest/shop"
)

var clientKinds = each([]Kind{
	{Name: "overload", Breaks: []Damage{Overloads}, draw: gathering(crowd, (*workload.Clients).Crowd)},
	{Name: "retry storm", Breaks: []Damage{Overloads}, draw: gathering(storm, (*workload.Clients).Storm)},
	{Name: "slow payments", Breaks: []Damage{PaymentsWait}, Hold: payersStay, draw: gathering(payers, (*workload.Clients).Pay)},
	{
		Name: "unfinished requests", Breaks: []Damage{StaysUnfinished}, Hold: unfinishedStay,
		draw: gathering(unfinished, (*workload.Clients).LeaveUnfinished),
	},
	{Name: "greedy account", Breaks: []Damage{AccountFloods}, Hold: floodStay, draw: gathering(greedy, (*workload.Clients).Flood)},
	{Name: "flood of strangers", Breaks: []Damage{StrangersFlood}, Hold: floodStay, draw: gathering(strangers, (*workload.Clients).Knock)},
	{Name: "slow readers", Breaks: []Damage{StaysUnread}, Hold: floodStay, draw: gathering(slowReaders, (*workload.Clients).ReadNothing)},
	{Name: "flash sale", victims: []string{stack.Postgres}, traffic: true, draw: (*Scheduler).flashSale},
}, func(k *Kind) { k.Counts = true })

const (
	// crowd is how many clients order at once without pauses: far more than the replicas can serve.
	crowd = 300
	// storm is how many clients repeat what they sent without pauses.
	storm = 150
	// payers is how many pay at once with a card that takes the provider long: far more than the
	// database connections of a replica, and more than the places in which one account may wait.
	payers = 220
	// payersStay is how long they do: until most of them have ordered twice.
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
	// slowReaders is how many answers stay unread: more than nginx has places.
	slowReaders = 700
	// floodStay is how long these last: until the others have sent enough requests to judge by.
	floodStay = 6 * time.Second
	// buyers is how many want one of the few units of a sale: enough that their orders overlap.
	buyers = 60
)

// gathering has more clients send requests while it lasts, and counts these.
func gathering(size int, gather func(c *workload.Clients, ctx context.Context, size int) int) draw {
	return func(s *Scheduler, r *Run) {
		stop := func() {}
		r.Inject = func(ctx context.Context) error {
			stop = shop.Beside(ctx, func(ctx context.Context) { r.Hits += gather(s.Clients, ctx, size) })
			return nil
		}
		r.Heal = func(context.Context) error {
			stop()
			return nil
		}
	}
}

// flashSale has many buyers order the few units of a product at once. It is for sale before
// anything beside it breaks, or nobody could be told whether they got one.
func (s *Scheduler) flashSale(r *Run) {
	sku := ""
	gathering(buyers, func(c *workload.Clients, ctx context.Context, size int) int { return c.Sell(ctx, sku, size) })(s, r)
	r.prepare = func(ctx context.Context) (err error) {
		sku, err = s.Clients.OpenSale(ctx)
		return err
	}
}
