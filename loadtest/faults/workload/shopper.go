package workload

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/oncepay/oncepay/internal/wait"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

const (
	// resend is the share of finished requests that are sent again, up to this many actions later.
	resend, resendWithin = 0.10, 40
	// waits is the share of duplicates that ask to wait for the answer (RFC 7240) instead of a 409.
	waits = 0.25
	// lookedUp is the share of requests whose key is looked up: while they run, or after their
	// answer.
	lookedUp = 0.10
)

// shopper is one of the clients. It is not safe for concurrent use.
type shopper struct {
	*Clients
	id    int
	later []planned
}

// planned is a finished request that is to be sent again.
type planned struct {
	action int
	seed   uint64 // of all that is random about it
	Request
}

func (c *Clients) shopper(id int) *shopper { return &shopper{Clients: c, id: id} }

// shopUntil does one thing after the other until ctx ends, and then sends again what is left to.
func (c *shopper) shopUntil(ctx context.Context) {
	working := context.WithoutCancel(ctx)
	for n := 0; ctx.Err() == nil; n++ {
		for _, p := range c.due(n) {
			c.sendAgain(working, p)
		}
		one := c.action(n)
		one.act(working)
		_ = wait.Pause(ctx, time.Duration(one.random.Int64N(int64(thinkTime))))
	}
	for _, p := range c.later {
		c.sendAgain(working, p)
	}
}

// due takes out what is to be sent again by action n.
func (c *shopper) due(n int) []planned {
	var now []planned
	c.later = slices.DeleteFunc(c.later, func(p planned) bool {
		if p.action <= n {
			now = append(now, p)
		}
		return p.action <= n
	})
	return now
}

// action is one of the things that a client does. All of its choices follow from its number and the
// campaign's seed, however the actions before it went.
type action struct {
	*shopper
	n      int
	random *rand.Rand
}

func (c *shopper) action(n int) *action {
	return &action{shopper: c, n: n, random: rand.New(rand.NewPCG(c.seed, uint64(c.id)<<40|uint64(n)))}
}

// fork makes a source for one request: the number of its attempts is not known.
func (a *action) fork() *rand.Rand {
	return rand.New(rand.NewPCG(a.random.Uint64(), a.random.Uint64()))
}

// chance is true in this share of all cases.
func (a *action) chance(share float64) bool { return a.random.Float64() < share }

// do sends a request until it is answered.
func (a *action) do(ctx context.Context, r Request) journal.Attempt {
	random := a.fork()
	a.finish(r)
	looks, via := a.chance(lookedUp), randomEndpoint(a.random)
	answer := a.call(ctx, r, random)
	if looks {
		a.wire.LookUp(ctx, r, via)
	}
	return answer
}

// finish draws whether a request is to be sent again when it is over, and when.
func (a *action) finish(r Request) {
	again, after, seed := a.chance(resend), 1+a.random.IntN(resendWithin), a.random.Uint64()
	if again {
		a.later = append(a.later, planned{a.n + after, seed, r})
	}
}

func (c *shopper) sendAgain(ctx context.Context, p planned) {
	random := rand.New(rand.NewPCG(p.seed, uint64(p.action)))
	r := p.Request
	r.Via, r.Purpose, r.Prefer = "", journal.Again, preference(random)
	c.call(ctx, r, random)
}

// preference is what a duplicate asks for.
func preference(random *rand.Rand) string {
	if random.Float64() < waits {
		return "wait=2"
	}
	return ""
}
