package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncepay/oncepay/internal/wait"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

// stormPatience is when a client of a storm sends its request again: before a busy service has
// answered.
const stormPatience = 300 * time.Millisecond

// crowdPause is how long a client of a crowd pauses after an unknown outcome: what nginx says in
// Retry-After.
const crowdPause = time.Second

const (
	// slowPayment is a card for which the provider takes paymentTakes: less than the replicas wait.
	slowPayment  = "tok_slow_2s"
	paymentTakes = 2 * time.Second
	quickPayment = "tok_visa"
	// payersCome is the time in which clients with slow payments arrive: their orders alone are no
	// overload.
	payersCome = 3 * time.Second
)

// Crowd has size more clients order at nginx without a pause until ctx ends, and returns how many
// orders they sent. They leave at once; only what succeeded they send a second time, as a client
// does that lost the answer. After an unknown outcome they pause: while no replica runs, they would
// leave more keys than Finish can decide. The name keeps the keys of several crowds apart.
func (c *Clients) Crowd(ctx context.Context, name string, size int) (sent int) {
	return c.gather(ctx, name, size, journal.Crowd, func(ctx context.Context, _ *action, r Request) int {
		switch c.abandon(ctx, r) {
		case journal.Succeeded:
			c.abandon(ctx, r)
			return 2
		case journal.Unknown:
			_ = wait.Pause(ctx, crowdPause)
		}
		return 1
	})
}

// Storm has size more clients order, each of which repeats its request, without a pause and before
// it is answered, until the answer is final or ctx ends. What is undecided then is for Finish.
func (c *Clients) Storm(ctx context.Context, name string, size int) (sent int) {
	return c.gather(ctx, name, size, journal.RetryStorm, func(_ context.Context, _ *action, r Request) int {
		r.Patience = stormPatience
		c.open.add(r, false)
		for number := 1; ; number++ {
			a := c.wire.Once(context.WithoutCancel(ctx), r, number)
			c.open.answered(r, a.Outcome())
			if a.Outcome().Decided() || ctx.Err() != nil {
				return number
			}
		}
	})
}

// Pay has size more clients order at one replica, and pay with a card for which the provider takes
// paymentTakes, until ctx ends. They retry as clients should. It returns how many requests there
// were.
func (c *Clients) Pay(ctx context.Context, name, replica string, size int) (sent int) {
	return c.payers(ctx, name, replica, size, journal.SlowPayer, slowPayment, 0)
}

// PayQuickly is Pay with a card that the provider charges at once. The clients wait for as long as
// those of Pay, so the replica has the same work. What it turns away is too much for the machine.
func (c *Clients) PayQuickly(ctx context.Context, name, replica string, size int) (sent int) {
	return c.payers(ctx, name, replica, size, journal.Bystander, quickPayment, paymentTakes)
}

func (c *Clients) payers(ctx context.Context, name, replica string, size int, purpose journal.Purpose, token string, pause time.Duration) (sent int) {
	return c.gather(ctx, name, size, purpose, func(ctx context.Context, a *action, r Request) int {
		placed := a.arrive(ctx, r, replica)
		if placed.Resource == "" {
			return 1
		}
		card := map[string]any{"method": map[string]any{"type": "card", "token": token}}
		payment := a.request(r.Account, "payment", "/orders/"+placed.Resource+"/payments", card)
		payment.Key, payment.Via, payment.Purpose = r.Key+"-payment", replica, r.Purpose
		a.call(ctx, payment, a.fork())
		_ = wait.Pause(ctx, pause)
		return 2
	})
}

// arrive places an order at a replica, the first one within payersCome.
func (a *action) arrive(ctx context.Context, r Request, replica string) journal.Attempt {
	if a.n == 0 {
		_ = wait.Pause(ctx, time.Duration(a.random.Int64N(int64(payersCome))))
	}
	r.Via = replica
	return a.call(ctx, r, a.fork())
}

// gather has each of the clients place one order after the other, and adds up what they sent.
func (c *Clients) gather(ctx context.Context, name string, size int, purpose journal.Purpose,
	place func(context.Context, *action, Request) int,
) int {
	account := c.shop.Accounts[0]
	if purpose == journal.Greedy { // the one that shops less: its victims are most of the clients
		account = c.shop.Accounts[1]
	}
	var requests atomic.Int64
	var group sync.WaitGroup
	for id := range size {
		group.Go(func() {
			one := c.shopper(-1)
			for n := 0; ctx.Err() == nil; n++ {
				a := &action{shopper: one, n: n, random: rand.New(rand.NewPCG(c.seed, uint64(id)<<32|uint64(n)))}
				r := a.order(account, a.ampleItems())
				r.Key = fmt.Sprintf("faults-crowd-%s-%d-%d", name, id, n)
				r.Via, r.Purpose = nginx, purpose
				requests.Add(int64(place(context.WithoutCancel(ctx), a, r)))
			}
		})
	}
	group.Wait()
	return int(requests.Load())
}
