package workload

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/oncepay/oncepay/internal/wait"
	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
)

const (
	// thinkTime is the longest pause between two actions of a client: this makes a steady load, not
	// a benchmark.
	thinkTime = 250 * time.Millisecond
	// finishers resolve what was left open side by side.
	finishers = 16
	// resend is the share of requests that are sent again: at soonestAgain, when most have their
	// answer, or up to latestAgain later.
	resend, soonestAgain, latestAgain = 0.10, time.Second, 10 * time.Second
	// waits is the share of duplicates that ask to wait for the answer (RFC 7240) instead of a 409.
	waits = 0.25
	// lookedUp is the share of requests whose key is looked up: while they run, or after their
	// answer.
	lookedUp = 0.10
)

// Clients are the campaign's. Make them by NewClients and let them Run.
type Clients struct {
	wire *Wire
	shop *Shop
	seed uint64
	n    int
	open open

	over     chan struct{} // closed by end, when they shop no more
	end      func()
	later    sync.WaitGroup // what is sent again
	refusals atomic.Int64   // of RefuseDuring so far
	restocks atomic.Int64   // of Restock
	steady   atomic.Int64   // orders of Steady
}

// NewClients makes n clients, whose choices follow from the seed.
func NewClients(wire *Wire, shop *Shop, seed uint64, n int) *Clients {
	over := make(chan struct{})
	return &Clients{wire: wire, shop: shop, seed: seed, n: n, over: over, end: sync.OnceFunc(func() { close(over) })}
}

// Run shops until ctx ends, and returns when every client has its last answer.
func (c *Clients) Run(ctx context.Context) {
	var group sync.WaitGroup
	for id := range c.n {
		group.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				a := c.action(id, n)
				a.act(context.WithoutCancel(ctx))
				_ = wait.Pause(ctx, time.Duration(a.random.Int64N(int64(thinkTime))))
			}
		})
	}
	group.Wait()
	c.end()
	c.later.Wait()
}

// Finish retries the requests that are not decided, until all are or ctx ends. What a client left
// is for the system to finish; only with everything are those keys retried, too.
func (c *Clients) Finish(ctx context.Context, everything bool) {
	for {
		undecided := c.open.list(everything)
		if len(undecided) == 0 || ctx.Err() != nil {
			return
		}
		var group errgroup.Group
		group.SetLimit(finishers)
		for i, r := range undecided {
			r.Via, r.Purpose = nginx, journal.Finishing
			group.Go(func() error {
				c.call(ctx, r, rand.New(rand.NewPCG(c.seed, uint64(i))))
				return nil
			})
		}
		_ = group.Wait() // they return none
	}
}

// sideBySide has n do something at the same time, and adds up what they return.
func sideBySide(n int, do func(i int) int) (sum int) {
	var total atomic.Int64
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { total.Add(int64(do(i))) })
	}
	group.Wait()
	return int(total.Load())
}

// call sends a request until it is answered, and keeps it for Finish if it is not. One without a
// key is sent once.
func (c *Clients) call(ctx context.Context, r Request, random *rand.Rand) journal.Attempt {
	if r.Key == "" {
		return c.wire.Once(ctx, r, 1)
	}
	c.open.add(r, false)
	return c.answered(r, c.wire.Call(ctx, r, random))
}

// abandon sends a request once; its client does not retry, whatever the answer.
func (c *Clients) abandon(ctx context.Context, r Request) journal.Outcome {
	c.open.add(r, true)
	return c.answered(r, c.wire.Once(ctx, r, 1)).Outcome()
}

func (c *Clients) answered(r Request, a journal.Attempt) journal.Attempt {
	c.open.answered(r, a.Outcome())
	return a
}

// action is one of the things that a client does. All of its choices follow from its number and the
// campaign's seed, however the actions before it went. It is not safe for concurrent use.
type action struct {
	*Clients
	id, n  int // of the client, and of its action
	random *rand.Rand
}

func (c *Clients) action(id, n int) *action {
	return &action{c, id, n, rand.New(rand.NewPCG(c.seed, uint64(id)<<40|uint64(n)))}
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
	a.repeat(ctx, r)
	looks, via := a.chance(lookedUp), randomEndpoint(a.random)
	answer := a.call(ctx, r, random)
	if looks {
		a.wire.LookUp(ctx, r, via)
	}
	return answer
}

// repeat draws whether a request is to be sent again when it is over, and when.
func (a *action) repeat(ctx context.Context, r Request) {
	again, random := a.chance(resend), a.fork()
	if !again {
		return
	}
	a.later.Go(func() {
		select {
		case <-time.After(soonestAgain + time.Duration(random.Int64N(int64(latestAgain)))):
		case <-a.over:
		}
		r.Via, r.Purpose, r.Prefer = "", journal.Again, preference(random)
		a.call(ctx, r, random)
	})
}

// preference is what a duplicate asks for.
func preference(random *rand.Rand) string {
	if random.Float64() < waits {
		return "wait=2"
	}
	return ""
}

// open holds the requests that are not decided yet. Decided ones are dropped: a campaign of hours
// makes millions. The zero value is empty; it is safe for concurrent use.
type open struct {
	mu   sync.Mutex
	keys map[books.KeyID]*openKey
}

type openKey struct {
	requests map[string]Request // all that the key is used for, by their fingerprints
	left     bool               // its client does not come back
}

func (o *open) add(r Request, left bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	id := books.KeyID{Account: r.Account, Key: r.Key}
	if o.keys == nil {
		o.keys = map[books.KeyID]*openKey{}
	}
	if o.keys[id] == nil {
		o.keys[id] = &openKey{requests: map[string]Request{}}
	}
	o.keys[id].requests[r.fingerprint()], o.keys[id].left = r, left
}

// answered takes in the outcome of a request. The key is decided when one of its requests has a
// final answer; that the key belongs to another request decides only this one.
func (o *open) answered(r Request, outcome journal.Outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	id := books.KeyID{Account: r.Account, Key: r.Key}
	switch key := o.keys[id]; {
	case key == nil:
	case outcome == journal.Succeeded, outcome == journal.Refused, outcome == journal.Expired:
		delete(o.keys, id)
	case outcome == journal.TurnedAway && key.left: // nothing was begun, and nobody asks for it any more
		delete(o.keys, id)
	case outcome == journal.Reused:
		if delete(key.requests, r.fingerprint()); len(key.requests) == 0 {
			delete(o.keys, id)
		}
	}
}

// list returns the open requests; those of clients that left only with everything.
func (o *open) list(everything bool) []Request {
	o.mu.Lock()
	defer o.mu.Unlock()
	var all []Request
	for _, key := range o.keys {
		if key.left && !everything {
			continue
		}
		for _, r := range key.requests {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b Request) int {
		return cmp.Or(cmp.Compare(a.Client, b.Client), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Account, b.Account), slices.Compare(a.Body, b.Body))
	})
	return all
}
