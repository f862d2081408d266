package oncecheck

import (
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/oncepay/oncepay/internal/wait"
)

// probe is what a rule works with: requests, their retries, and the number of effects. A rule's
// check ends by panicking with a Verdict, or with failure when the run cannot go on; run recovers
// it.
type probe struct {
	ctx    context.Context
	client *client
	cfg    *Config
	shown  []Exchange // the evidence so far
	mu     sync.Mutex
}

// The pauses of a retrying client without a Retry-After.
const firstPause, longestPause = 100 * time.Millisecond, 2 * time.Second

// failure ends a run: the service or a command did not do what every rule needs.
type failure struct{ error }

// fresh returns the request under a new key, and with texts of its own.
func (p *probe) fresh() Request { return p.keyed(p.cfg.newKey()) }

// keyed returns the request under a key, and with texts of its own.
func (p *probe) keyed(key string) Request {
	r := p.cfg.Request.with(letters())
	r.Header.Set(p.cfg.KeyHeader, key)
	return r
}

// difference says what is different between two answers to one request, or nothing.
func (p *probe) difference(first, again Exchange) string {
	if p.client.renews && first.succeeded() && again.succeeded() {
		return ""
	}
	return first.difference(again)
}

// send sends a request once.
func (p *probe) send(note string, r Request) Exchange { return p.sendBy(note, r, way{}) }

func (p *probe) sendBy(note string, r Request, w way) Exchange {
	p.must(p.client.reserve(p.ctx, 1))
	e := p.show(p.client.exchange(p.ctx, note, r, w))
	p.must(p.ctx.Err())
	return e
}

// show adds an exchange to the evidence.
func (p *probe) show(e Exchange) Exchange {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shown = append(p.shown, e)
	return e
}

func (p *probe) must(err error) {
	if err != nil {
		panic(failure{err})
	}
}

func (p *probe) pause(d time.Duration) { p.must(wait.Pause(p.ctx, d)) }

// retry repeats a request as a polite client does, and returns the last answer.
func (p *probe) retry(note string, r Request) Exchange {
	last, err := p.politely(note, r)
	p.must(err)
	return last
}

// outwait is retry for a request that may still be executed: a 409 is no answer to it, whether or
// not it asks for a retry.
func (p *probe) outwait(note string, r Request) Exchange {
	until, next := time.Now().Add(p.cfg.Patience), firstPause
	for {
		last := p.retry(note, r)
		if last.status != http.StatusConflict || time.Now().After(until) {
			return last
		}
		p.pause(next)
		next = min(2*next, longestPause)
	}
}

// first sends a request that has to succeed.
func (p *probe) first(r Request) Exchange {
	e := p.send("the request", r)
	if !e.succeeded() {
		p.undecided("the request got %s", e.told())
	}
	return e
}

// sameAgain retries a request, and requires the first answer. What was shown before is evidence,
// too.
func (p *probe) sameAgain(note string, r Request, first Exchange, before ...Exchange) {
	again := p.retry(note, r)
	if why := p.difference(first, again); why != "" {
		p.broken(append(before, first, again), "%s", why)
	}
}

// politely is retry for a goroutine of its own, which must not panic. It repeats what
// idempotency/transport repeats.
func (p *probe) politely(note string, r Request) (Exchange, error) {
	for began, longest := time.Now(), firstPause; ; longest = min(2*longest, longestPause) {
		if err := p.client.reserve(p.ctx, 1); err != nil {
			return Exchange{}, err
		}
		e := p.show(p.client.exchange(p.ctx, note, r, way{}))
		after := rand.N(longest)
		if seconds, err := strconv.Atoi(e.header.Get("Retry-After")); err == nil {
			after += time.Duration(seconds) * time.Second
		}
		if (e.status != 0 && !e.repeatable()) || time.Since(began)+after > p.cfg.Patience {
			return e, p.ctx.Err()
		}
		if err := wait.Pause(p.ctx, after); err != nil {
			return e, err
		}
	}
}

// burst sends one request many times side by side.
func (p *probe) burst(n int, r Request) []Exchange {
	p.must(p.client.reserve(p.ctx, n))
	answers := make([]Exchange, n)
	var ready, sent sync.WaitGroup
	ready.Add(n)
	for i := range n {
		sent.Go(func() {
			ready.Done()
			ready.Wait()
			answers[i] = p.show(p.client.exchange(p.ctx, noteAtOnce, r, way{}))
		})
	}
	sent.Wait()
	p.must(p.ctx.Err())
	return answers
}

// atOnce is burst, and sends each request again as long as its answer asks for it. It returns the
// first answers and the last ones.
func (p *probe) atOnce(n int, r Request) (first, last []Exchange) {
	first = p.burst(n, r)
	last = slices.Clone(first)
	var group errgroup.Group
	for i, e := range first {
		if e.busy() || e.status == 0 {
			group.Go(func() (err error) {
				last[i], err = p.politely("the retry of one that was not answered for good", r)
				return err
			})
		}
	}
	p.must(group.Wait())
	return first, last
}

// effects counts them; the second value is false if nothing counts.
func (p *probe) effects() (int64, bool) {
	if p.cfg.Count == nil {
		return 0, false
	}
	n, err := p.cfg.Count(p.ctx)
	p.must(err)
	return n, true
}
