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
func (p *probe) counted(f func() Verdict) Verdict {
	before, counts := p.effects()
	v := f()
	switch {
	case v.Outcome != Holds:
		return v
	case !counts:
		return notDecided(uncounted)
	}
	after, _ := p.effects()
	if after-before == 1 { // another one may be on its way
		p.pause(settling)
		after, _ = p.effects()
	}
	if after-before != 1 {
		return broken(nil, "there were %d effects instead of 1", after-before)
	}
	return v
}

// repeated sends a request, and then again.
func (p *probe) repeated(r Request) Verdict {
	first := p.send("the request", r)
	if !first.succeeded() {
		return notDecided("the request got %s", first.told())
	}
	for range repetitions {
		if v := p.sameAgain(noteAgain, r, first); v.Outcome != Holds {
			return v
		}
	}
	return holds()
}

func replay(p *probe) Verdict {
	v := p.repeated(p.fresh())
	if v.Outcome == Broken && v.Evidence[1].succeeded() {
		p.client.renews = true
		v.Reason += "; the other rules compare no answers that are successes"
	}
	return v
}

func oneEffect(p *probe) Verdict {
	return p.counted(func() Verdict { return p.repeated(p.fresh()) })
}

func memberOrder(p *probe) Verdict {
	r := p.fresh()
	reordered, ok := reorder(r.Body)
	if !ok {
		return notDecided("the body is no JSON object or list")
	}
	first := p.send("the request", r)
	r.Body = reordered
	return p.sameAgain(noteReordered, r, first)
}

func otherBody(p *probe) Verdict {
	change, ok := p.findOtherBody()
	if !ok {
		return notDecided("no changed body was accepted under a key of its own; name one with --other-body")
	}
	return p.counted(func() Verdict { return p.reused(func(r Request) Request { r.Body = change(r.Body); return r }) })
}

// maxChanges bounds how many changed bodies are tried.
const maxChanges = 6

// findOtherBody returns a change of bodies after which the request is accepted under a key of its
// own. Otherwise a refusal would say nothing about the key.
func (p *probe) findOtherBody() (func(string) string, bool) {
	if body := p.cfg.OtherBody; body != "" {
		change := func(string) string { return strings.ReplaceAll(body, Unique, letters()) }
		return change, p.accepts(func(r Request) Request { r.Body = change(r.Body); return r })
	}
	for n := range maxChanges {
		change := func(body string) string { changed, _ := changeLeaf(body, n); return changed }
		if _, ok := changeLeaf(p.cfg.Request.Body, n); !ok {
			break
		}
		if p.accepts(func(r Request) Request { r.Body = change(r.Body); return r }) {
			return change, true
		}
	}
	return nil, false
}

// accepts reports whether a changed request succeeds under a key of its own.
func (p *probe) accepts(change func(Request) Request) bool {
	return p.retry("the other request, under a key of its own", change(p.fresh())).succeeded()
}

// reused sends a request, another one with its key, and the first one again.
func (p *probe) reused(change func(Request) Request) Verdict {
	r := p.fresh()
	first := p.send("the request", r)
	if !first.succeeded() {
		return notDecided("the request got %s", first.told())
	}
	other := p.send(noteOther, change(r))
	shown := []Exchange{first, other}
	switch {
	case first.same(other):
		return broken(shown, "another request got the answer of the first one, as if it had been executed")
	case other.succeeded() && p.client.renews:
		return broken(shown, "another request with the key got %s, as if it were the first one", other.told())
	case other.succeeded():
		return broken(shown, "another request was executed with a key that was used before")
	case !other.refused():
		return broken(shown, "another request with the key got %s instead of a refusal", other.told())
	}
	again := p.retry("the first request again", r)
	if why := p.difference(first, again); why != "" {
		return broken([]Exchange{first, other, again}, "after the refusal of the other one, %s", why)
	}
	return holds()
}

func otherPath(p *probe) Verdict {
	if p.cfg.OtherURL == "" {
		return notDecided("name another operation that takes the same body with --other-url")
	}
	change := func(r Request) Request {
		r.URL = strings.ReplaceAll(p.cfg.OtherURL, Unique, letters())
		return r
	}
	if !p.accepts(change) {
		return notDecided("the request to --other-url is refused under a key of its own, too")
	}
	return p.reused(change)
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

func otherCaller(p *probe) Verdict {
	if len(p.cfg.OtherCaller) == 0 {
		return notDecided("name another caller's headers with --other-header, such as 'Authorization: Bearer …'")
	}
	change := func(r Request) Request {
		for name, values := range p.cfg.OtherCaller {
			r.Header[name] = values
		}
		return r
	}
	if !p.accepts(change) {
		return notDecided("the other caller is refused under a key of its own, too")
	}
	r := p.fresh()
	first := p.send("the request", r)
	theirs := p.fresh()
	theirs.Header.Set(p.cfg.KeyHeader, r.Header.Get(p.cfg.KeyHeader))
	other := p.retry("another caller's request with the same key", change(theirs))
	shown := []Exchange{first, other}
	switch {
	case other.replayMark() != "" || (other.succeeded() && first.body == other.body && first.body != ""):
		return broken(shown, "another caller got the answer of the first one")
	case other.succeeded():
		return holds()
	}
	return broken(shown, "another caller got %s: the keys of callers are not kept apart", other.told())
}

// invalid is no JSON; where a body is no JSON, an empty one has to do.
const invalid = "{"

func errorThenKey(p *probe) Verdict {
	r := p.fresh()
	wrong := r
	wrong.Body = invalid
	refused := p.send("an invalid request", wrong)
	if !refused.refused() {
		return notDecided("an invalid body got %s instead of 4xx", refused.told())
	}
	return p.counted(func() Verdict {
		first := p.retry("the right request with its key", r)
		shown := []Exchange{refused, first}
		switch {
		case first.status == refused.status && first.body == refused.body:
			return broken(shown, "the key still has the error: a client that corrects its request cannot use it again")
		case first.status == http.StatusUnprocessableEntity || first.status == http.StatusConflict:
			again := p.send("the invalid request again", wrong)
			if again.difference(refused) != "" {
				return broken([]Exchange{refused, first, again}, "the key is stuck: the right request gets %s, and the invalid one %s",
					first.told(), again.told())
			}
			return notDecided("the API binds the key to the invalid request (%s), which is safe", first.told())
		case !first.succeeded():
			return broken(shown, "the right request got %s", first.told())
		}
		return p.sameAgain("the right request again", r, first, refused)
	})
}

func survives(p *probe) Verdict {
	if p.cfg.Between == nil {
		return notDecided("name a command that disturbs the service between a request and its retry with --between, such as the flush of its cache")
	}
	return p.counted(func() Verdict {
		r := p.fresh()
		first := p.send("the request", r)
		if err := p.cfg.Between(p.ctx); err != nil {
			return notDecided("--between failed: %s", err)
		}
		return p.sameAgain("the same request after the disturbance", r, first)
	})
}
