package oncecheck

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/oncepay/oncepay/internal/wait"
)

// errUsedUp is why a rule ends that would send too many requests.
var errUsedUp = errors.New("the requests of this run are used up; --max-requests allows more")

// probe is what the rules of a run work with: it sends requests, at a bounded rate, and remembers
// all of them. Its methods are a rule's own, except those whose comment says more.
type probe struct {
	ctx   context.Context
	stop  context.CancelCauseFunc
	cfg   *Config
	began time.Time
	pool  *http.Transport
	rule  string // that is checked now
	// renews says that a replay is a success, and another answer than the first one: the rule
	// replay is broken. The others then judge effects alone, or all of them would be broken.
	renews    bool
	uncounted bool                // the rule needs the number of effects, and nothing counts them
	from      int                 // of all: where the evidence begins
	shown     map[string]Exchange // by rule: what tells dialects apart

	turns <-chan time.Time // of requests
	sent  atomic.Int64

	mu  sync.Mutex // guards what follows
	all []Exchange
}

func newProbe(ctx context.Context, cfg *Config) *probe {
	ctx, stop := context.WithCancelCause(ctx)
	turns := time.Tick(time.Second / time.Duration(cfg.Rate))
	return &probe{ctx: ctx, stop: stop, cfg: cfg, began: time.Now(), turns: turns, pool: cfg.transport(), shown: map[string]Exchange{}}
}

// check checks one rule, which may end by panicking with a Verdict.
func (p *probe) check(rule Rule) (v Verdict) {
	p.rule, p.from, p.uncounted = rule.Name, len(p.all), false
	defer func() {
		switch ended := recover().(type) {
		case nil:
			v.Outcome = Holds
		case Verdict:
			v = ended
		default:
			panic(ended)
		}
		if v.Outcome == Broken {
			v.Evidence = p.evidence() // no request is under way any more
		}
	}()
	rule.check(p)
	p.undecidedIf(p.uncounted, uncounted)
	p.goOn()
	return v
}

// evidence is the shortest way to see again what the rule saw last: what was exchanged since its
// last fresh key, of equal answers one, and no more than the last four.
func (p *probe) evidence() (list []Exchange) {
	for _, e := range p.all[p.from:] {
		if !slices.ContainsFunc(list, func(o Exchange) bool { return o.Note == e.Note && o.difference(e) == "" }) {
			list = append(list, e)
		}
	}
	return list[max(0, len(list)-4):]
}

func (p *probe) brokenIf(so bool, format string, args ...any) { p.endIf(so, Broken, format, args...) }

func (p *probe) undecidedIf(so bool, format string, args ...any) {
	p.endIf(so, NotDecided, format, args...)
}

// failIf ends the run: the service or a command did not do what every rule needs.
func (p *probe) failIf(so bool, format string, args ...any) { p.endIf(so, failed, format, args...) }

func (p *probe) endIf(so bool, outcome Outcome, format string, args ...any) {
	if so {
		p.goOn()
		panic(Verdict{Outcome: outcome, Reason: fmt.Sprintf(format, args...)})
	}
}

// goOn ends the rule if the requests are used up, and the run if it was canceled: what was seen
// since then shows nothing.
func (p *probe) goOn() {
	switch err := context.Cause(p.ctx); {
	case errors.Is(err, errUsedUp):
		panic(Verdict{Outcome: NotDecided, Reason: err.Error()})
	case err != nil:
		panic(Verdict{Outcome: failed, Reason: err.Error()})
	}
}

// shows keeps the first answer of a rule by which dialects are told apart.
func (p *probe) shows(e Exchange) Exchange {
	if _, known := p.shown[p.rule]; !known && e.status != 0 {
		p.shown[p.rule] = e
	}
	return e
}

func (p *probe) pause(d time.Duration) { _ = wait.Pause(p.ctx, d) }

// fresh returns the request under a new key, and with texts of its own. What was before is no
// evidence.
func (p *probe) fresh() Request {
	p.from = len(p.all)
	return p.keyed(uuid.NewString())
}

// keyed returns the request under a key, and with texts of its own.
func (p *probe) keyed(key string) Request {
	r := p.cfg.Request.with(letters())
	r.Header.Set(p.cfg.KeyHeader, key)
	return r
}

// reserve waits until so many requests may be sent at once. Safe for concurrent use.
func (p *probe) reserve(requests int) {
	if p.sent.Add(int64(requests)) > int64(p.cfg.MaxRequests) {
		p.stop(errUsedUp)
	}
	for range requests {
		select {
		case <-p.turns:
		case <-p.ctx.Done():
		}
	}
}

// exchange sends a request once, without waiting for its turn. Safe for concurrent use.
func (p *probe) exchange(note string, r Request, by way) Exchange {
	ctx, cancel := context.WithTimeout(p.ctx, p.cfg.Attempt)
	defer cancel()
	e := Exchange{Note: note, Sent: time.Since(p.began)}
	if err := e.over(ctx, r, by); err != nil {
		e.Error, e.status = err.Error(), 0
	}
	e.Answered = time.Since(p.began)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() == nil { // or it may not have been sent
		p.all = append(p.all, e)
	}
	return e
}

// send sends a request once. Safe for concurrent use.
func (p *probe) send(note string, r Request) Exchange { return p.sendBy(p.pool.RoundTrip, note, r) }

func (p *probe) sendBy(by way, note string, r Request) Exchange {
	p.reserve(1)
	return p.exchange(note, r, by)
}

// first sends a fresh request, which has to succeed.
func (p *probe) first() (Request, Exchange) {
	r := p.fresh()
	e := p.send("the request", r)
	p.undecidedIf(!e.succeeded(), "the request got %s", e.told())
	return r, e
}

// The pauses of a retrying client without a Retry-After.
const firstPause, longestPause = 100 * time.Millisecond, 2 * time.Second

// repeat sends a request as long as its answer asks for it, as a polite client does, and returns
// the last answer. Safe for concurrent use.
func (p *probe) repeat(note string, r Request, asks func(Exchange) bool) Exchange {
	for began, longest := time.Now(), firstPause; ; longest = min(2*longest, longestPause) {
		e := p.send(note, r)
		told, _ := e.retryAfter()
		after := told + rand.N(longest)
		if !asks(e) || time.Since(began)+after > p.cfg.Patience || wait.Pause(p.ctx, after) != nil {
			return e
		}
	}
}

// retry repeats a request as long as its answer asks for it, if only in words.
func (p *probe) retry(note string, r Request) Exchange { return p.repeat(note, r, Exchange.unanswered) }

// outwait is retry for a request that may still be executed. It has to succeed in the end.
func (p *probe) outwait(note string, r Request) Exchange {
	began := time.Now()
	last := p.repeat(note, r, Exchange.undecided)
	p.brokenIf(!last.succeeded(), "%s later the request still got %s: the client cannot know whether it was executed",
		time.Since(began).Round(time.Second/10), last.told())
	return last
}

// sameAgain retries a request, and requires the first answer.
func (p *probe) sameAgain(note string, r Request, first Exchange) {
	p.same("", first, p.retry(note, r))
}

// same requires that two answers to one request are the same. The reason begins with a text.
func (p *probe) same(reason string, first, again Exchange) {
	why := first.difference(again)
	tolerated := p.renews && first.succeeded() && again.succeeded()
	p.brokenIf(why != "" && !tolerated, "%s%s", reason, why)
}

func sideBySide(n int, f func(i int)) {
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { f(i) })
	}
	group.Wait()
}

// burst sends one request many times side by side.
func (p *probe) burst(n int, r Request) []Exchange {
	p.reserve(n)
	answers := make([]Exchange, n)
	sideBySide(n, func(i int) { answers[i] = p.exchange("one of many at once", r, p.pool.RoundTrip) })
	return answers
}

// atOnce is burst, and sends each request again as long as its answer asks for it. It returns the
// first answers and the last ones.
func (p *probe) atOnce(n int, r Request) (first, last []Exchange) {
	first = p.burst(n, r)
	last = slices.Clone(first)
	sideBySide(n, func(i int) {
		if first[i].undecided() {
			last[i] = p.repeat("the retry of one that was not answered for good", r, Exchange.undecided)
		}
	})
	return first, last
}

// settling is how long effects of requests that were answered may still appear.
const settling = 100 * time.Millisecond

const uncounted = "the answers show no second effect, but nothing counts the effects; name a way with --count, --count-command or --count-sql"

// effects counts them; 0 if nothing counts.
func (p *probe) effects() int64 {
	p.goOn()
	if p.cfg.Count == nil {
		return 0
	}
	n, err := p.cfg.Count(p.ctx)
	p.failIf(err != nil, "%v", err)
	return n
}

// counted requires that f has one effect. If nothing counts, the rule is not decided unless it is
// broken.
func (p *probe) counted(f func()) {
	before := p.effects()
	f()
	p.pause(settling)
	n := p.effects() - before
	p.uncounted = p.cfg.Count == nil
	p.brokenIf(n != 1 && !p.uncounted, "there were %d effects instead of 1", n)
}
