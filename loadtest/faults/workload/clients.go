package workload

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncepay/oncepay/internal/wait"
	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/faults/journal"
	"github.com/oncepay/oncepay/loadtest/shop"
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

	over    context.Context // ends by end, when they stop shopping
	end     context.CancelFunc
	later   sync.WaitGroup // what is sent again
	passers atomic.Int64   // actions of clients that come for one thing, so far
}

// NewClients makes n clients, whose choices follow from the seed.
func NewClients(wire *Wire, shop *Shop, seed uint64, n int) *Clients {
	over, end := context.WithCancel(context.Background())
	return &Clients{wire: wire, shop: shop, seed: seed, n: n, over: over, end: end}
}

// Run shops until ctx ends, and returns when every client has its last answer.
func (c *Clients) Run(ctx context.Context) {
	sideBySide(c.n, func(id int) int {
		for n := 0; ctx.Err() == nil; n++ {
			c.action(id, n).act(context.WithoutCancel(ctx))
			_ = wait.Pause(ctx, rand.N(thinkTime))
		}
		return 0
	})
	c.end()
	c.later.Wait()
}

// Finish retries the requests that are not decided, until all are, the time for that is over, or
// ctx ends. What a client left is for the system to finish; only with everything are those keys
// retried, too.
func (c *Clients) Finish(ctx context.Context, within time.Duration, everything bool) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for ctx.Err() == nil {
		undecided := c.open.list(everything)
		if len(undecided) == 0 {
			return
		}
		_ = shop.Each(ctx, len(undecided), finishers, func(ctx context.Context, i int) error {
			r := undecided[i]
			r.Via, r.Purpose, r.Leaves = nginx, journal.Finishing, false
			r.Patience = max(r.Patience, answerTimeout) // whoever hung up had less
			c.call(ctx, r)
			return nil
		})
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
// key is sent once, and so is one whose client leaves.
func (c *Clients) call(ctx context.Context, r Request) (a journal.Attempt) {
	c.open.add(r)
	if r.Leaves || r.Key == "" {
		a = c.wire.Once(ctx, r, 1)
	} else {
		a = c.wire.Call(ctx, r)
	}
	c.open.answered(r, a.Outcome())
	return a
}

// action is one of the things that a client does. What it asks for follows from its number and the
// campaign's seed, however the actions before it went. It is not safe for concurrent use.
type action struct {
	*Clients
	id, n  int // of the client, and of its action
	random *rand.Rand
}

func (c *Clients) action(id, n int) *action {
	return &action{c, id, n, rand.New(rand.NewPCG(c.seed, uint64(id)<<40|uint64(n)))}
}

// passer is an action of a client that comes for one thing.
func (c *Clients) passer() *action { return c.action(-1, int(c.passers.Add(1))) }

// TopUp and the next two are requests of the campaign itself, to nginx unless the caller changes
// that. It moves money, which needs a replica, Redis and PostgreSQL.
func (c *Clients) TopUp() Request { return probe(c.passer().money(c.shop.Accounts[0])) }

// Order is one of a unit that is always there.
func (c *Clients) Order() Request {
	return probe(c.passer().order(c.shop.Accounts[0], item(ample[0], 1)))
}

// Payment pays an order by a card.
func (c *Clients) Payment(order, token string) Request {
	return probe(c.passer().payment(c.shop.Accounts[0], order, card(token)))
}

func probe(r Request) Request {
	r.Via, r.Purpose = nginx, journal.Probe
	return r
}

// chance is true in this share of all cases.
func (a *action) chance(share float64) bool { return a.random.Float64() < share }

// do sends a request until it is answered.
func (a *action) do(ctx context.Context, r Request) journal.Attempt {
	a.repeat(ctx, r)
	looks := a.chance(lookedUp)
	answer := a.call(ctx, r)
	if looks {
		a.wire.LookUp(ctx, r, "")
	}
	return answer
}

// repeat draws whether a request is to be sent again when it is over.
func (a *action) repeat(ctx context.Context, r Request) {
	if !a.chance(resend) {
		return
	}
	a.later.Go(func() {
		_ = wait.Pause(a.over, soonestAgain+rand.N(latestAgain)) // shorter if they stop shopping
		r.Via, r.Purpose, r.Prefer = "", journal.Again, preference()
		a.call(ctx, r)
	})
}

// preference is what a duplicate asks for.
func preference() string {
	if rand.Float64() < waits {
		return "wait=2"
	}
	return ""
}

// open holds the requests that are not decided yet, by their keys and fingerprints. Decided ones
// are dropped: a campaign of hours makes millions. The zero value is empty; it is safe for
// concurrent use.
type open struct {
	mu   sync.Mutex
	keys map[books.KeyID]map[string]Request
}

func (o *open) add(r Request) {
	if r.Key == "" {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.keys == nil {
		o.keys = map[books.KeyID]map[string]Request{}
	}
	if o.keys[r.ID()] == nil {
		o.keys[r.ID()] = map[string]Request{}
	}
	o.keys[r.ID()][r.fingerprint()] = r
}

// answered takes in the outcome of a request. The key is decided when one of its requests has a
// final answer; that the key belongs to another request decides only this one.
func (o *open) answered(r Request, outcome journal.Outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case outcome == journal.Reused:
		delete(o.keys[r.ID()], r.fingerprint())
	case outcome.Decided(), outcome == journal.TurnedAway && r.Leaves: // nothing was begun, and nobody asks for it
		delete(o.keys, r.ID())
	}
}

// list returns the open requests; those of clients that left only with everything.
func (o *open) list(everything bool) (all []Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, requests := range o.keys {
		for _, r := range requests {
			if everything || !r.Leaves {
				all = append(all, r)
			}
		}
	}
	return all
}
