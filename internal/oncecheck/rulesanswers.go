package oncecheck

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// repetitions is how often a request is repeated where once would do.
const repetitions = 3

// settling is how long effects of requests that were answered may still appear.
const settling = 100 * time.Millisecond

// counted requires that f has one effect.
func (p *probe) counted(f func()) {
	before, counts := p.effects()
	f()
	if !counts {
		p.undecided(uncounted)
	}
	after, _ := p.effects()
	if after-before == 1 { // another one may be on its way
		p.pause(settling)
		after, _ = p.effects()
	}
	if after-before != 1 {
		p.broken(nil, "there were %d effects instead of 1", after-before)
	}
}

func replay(p *probe) {
	r := p.fresh()
	first := p.first(r)
	for range repetitions {
		again := p.retry(noteAgain, r)
		why := p.difference(first, again)
		if why != "" && again.succeeded() {
			p.client.renews = true
			why += "; the other rules compare no answers that are successes"
		}
		if why != "" {
			p.broken([]Exchange{first, again}, "%s", why)
		}
	}
}

func oneEffect(p *probe) {
	p.counted(func() {
		r := p.fresh()
		first := p.first(r)
		for range repetitions {
			p.sameAgain(noteAgain, r, first)
		}
	})
}

func memberOrder(p *probe) {
	r := p.fresh()
	reordered, ok := reorder(r.Body)
	if !ok {
		p.undecided("the body is no JSON object or list")
	}
	first := p.send("the request", r)
	r.Body = reordered
	p.sameAgain(noteReordered, r, first)
}

func otherBody(p *probe) {
	change := p.findOtherBody()
	p.counted(func() { p.reused(change) })
}

// maxChanges bounds how many changed bodies are tried.
const maxChanges = 6

// findOtherBody returns a change of bodies after which the request is accepted under a key of its
// own. Otherwise a refusal would say nothing about the key.
func (p *probe) findOtherBody() func(Request) Request {
	var bodies []func(string) string
	if body := p.cfg.OtherBody; body != "" {
		bodies = append(bodies, func(string) string { return strings.ReplaceAll(body, Unique, letters()) })
	}
	for n := 0; n < maxChanges && p.cfg.OtherBody == ""; n++ {
		if _, ok := changeLeaf(p.cfg.Request.Body, n); ok {
			bodies = append(bodies, func(body string) string { changed, _ := changeLeaf(body, n); return changed })
		}
	}
	for _, other := range bodies {
		change := func(r Request) Request { r.Body = other(r.Body); return r }
		if p.accepts(change) {
			return change
		}
	}
	p.undecided("no changed body was accepted under a key of its own; name one with --other-body")
	return nil
}

// accepts reports whether a changed request succeeds under a key of its own.
func (p *probe) accepts(change func(Request) Request) bool {
	return p.retry("the other request, under a key of its own", change(p.fresh())).succeeded()
}

// reused sends a request, another one with its key, and the first one again.
func (p *probe) reused(change func(Request) Request) {
	r := p.fresh()
	first := p.first(r)
	other := p.send(noteOther, change(r))
	shown := []Exchange{first, other}
	switch {
	case first.difference(other) == "":
		p.broken(shown, "another request got the answer of the first one, as if it had been executed")
	case other.succeeded() && p.client.renews:
		p.broken(shown, "another request with the key got %s, as if it were the first one", other.told())
	case other.succeeded():
		p.broken(shown, "another request was executed with a key that was used before")
	case !other.refused():
		p.broken(shown, "another request with the key got %s instead of a refusal", other.told())
	}
	again := p.retry("the first request again", r)
	if why := p.difference(first, again); why != "" {
		p.broken([]Exchange{first, other, again}, "after the refusal of the other one, %s", why)
	}
}

func otherPath(p *probe) {
	if p.cfg.OtherURL == "" {
		p.undecided("name another operation that takes the same body with --other-url")
	}
	change := func(r Request) Request {
		r.URL = strings.ReplaceAll(p.cfg.OtherURL, Unique, letters())
		return r
	}
	if !p.accepts(change) {
		p.undecided("the request to --other-url is refused under a key of its own, too")
	}
	p.reused(change)
}

// replayMark is a header by which a server marks a replay, such as X-Idempotent-Replay,
// Idempotency-Replayed, X-Idempotency-Cached or X-Cache-Hit; empty without one.
func (e Exchange) replayMark() string {
	for _, name := range slices.Sorted(maps.Keys(e.header)) {
		lower := strings.ToLower(name)
		names := strings.Contains(lower, "idempoten") || strings.Contains(lower, "cache-hit")
		if names && strings.EqualFold(e.header.Get(name), "true") {
			return name
		}
	}
	return ""
}

func otherCaller(p *probe) {
	if len(p.cfg.OtherCaller) == 0 {
		p.undecided("name another caller's headers with --other-header, such as 'Authorization: Bearer …'")
	}
	change := func(r Request) Request {
		for name, values := range p.cfg.OtherCaller {
			r.Header[name] = values
		}
		return r
	}
	if !p.accepts(change) {
		p.undecided("the other caller is refused under a key of its own, too")
	}
	r := p.fresh()
	first := p.send("the request", r)
	theirs := p.fresh()
	theirs.Header.Set(p.cfg.KeyHeader, r.Header.Get(p.cfg.KeyHeader))
	other := p.retry("another caller's request with the same key", change(theirs))
	shown := []Exchange{first, other}
	switch {
	case other.replayMark() != "" || (other.succeeded() && first.body == other.body && first.body != ""):
		p.broken(shown, "another caller got the answer of the first one")
	case !other.succeeded():
		p.broken(shown, "another caller got %s: the keys of callers are not kept apart", other.told())
	}
}

// invalid is no JSON; where a body is no JSON, an empty one has to do.
const invalid = "{"

func errorThenKey(p *probe) {
	r := p.fresh()
	wrong := r
	wrong.Body = invalid
	refused := p.send("an invalid request", wrong)
	if !refused.refused() {
		p.undecided("an invalid body got %s instead of 4xx", refused.told())
	}
	p.counted(func() {
		first := p.retry("the right request with its key", r)
		shown := []Exchange{refused, first}
		switch {
		case first.status == refused.status && first.body == refused.body:
			p.broken(shown, "the key still has the error: a client that corrects its request cannot use it again")
		case first.status == http.StatusUnprocessableEntity || first.status == http.StatusConflict:
			again := p.send("the invalid request again", wrong)
			if again.difference(refused) != "" {
				p.broken([]Exchange{refused, first, again}, "the key is stuck: the right request gets %s, and the invalid one %s",
					first.told(), again.told())
			}
			p.undecided("the API binds the key to the invalid request (%s), which is safe", first.told())
		case !first.succeeded():
			p.broken(shown, "the right request got %s", first.told())
		}
		p.sameAgain("the right request again", r, first, refused)
	})
}

func survives(p *probe) {
	if p.cfg.Between == nil {
		p.undecided("name a command that disturbs the service between a request and its retry with --between, such as the flush of its cache")
	}
	p.counted(func() {
		r := p.fresh()
		first := p.send("the request", r)
		if err := p.cfg.Between(p.ctx); err != nil {
			p.undecided("--between failed: %s", err)
		}
		p.sameAgain("the same request after the disturbance", r, first)
	})
}
