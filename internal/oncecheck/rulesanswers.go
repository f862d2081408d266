package oncecheck

import (
	"maps"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"
)

// repetitions is how often a request is repeated where once would do.
const repetitions = 3

func replay(p *probe) {
	r := p.fresh()
	first := p.first(r)
	for range repetitions {
		again := p.retry(noteAgain, r)
		why := first.difference(again)
		p.renews = why != "" && again.succeeded()
		p.brokenIf(p.renews, "%s; the other rules compare no answers that are successes", why)
		p.same("", first, again)
	}
}

func oneEffect(p *probe) {
	r := p.fresh()
	first := p.first(r)
	for range repetitions {
		p.sameAgain(noteAgain, r, first)
	}
}

func memberOrder(p *probe) {
	r := p.fresh()
	body := gjson.Parse(r.Body)
	p.undecidedIf(!gjson.Valid(r.Body) || body.Type != gjson.JSON, "the body is no JSON object or list")
	first := p.send("the request", r)
	r.Body = reorder(body)
	p.sameAgain(noteReordered, r, first)
}

// maxChanges bounds how many changed bodies are tried.
const maxChanges = 6

// otherBody looks for a body that is accepted under a key of its own. Otherwise a refusal would say
// nothing about the key.
func otherBody(p *probe) {
	tries, other := maxChanges, changeLeaf
	if p.cfg.OtherBody != "" {
		tries, other = 1, func(string, int) string { return strings.ReplaceAll(p.cfg.OtherBody, Unique, letters()) }
	}
	for n := range tries {
		change := func(r Request) Request { r.Body = other(r.Body, n); return r }
		if change(p.cfg.Request).Body != "" && p.accepts(change) {
			p.counted(func() { p.reused(change) })
			return
		}
	}
	p.undecidedIf(true, "no changed body was accepted under a key of its own; name one with --other-body")
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
	p.brokenIf(first.difference(other) == "", "another request got the answer of the first one, as if it had been executed")
	p.brokenIf(other.succeeded() && p.renews, "another request with the key got %s, as if it were the first one", other.told())
	p.brokenIf(other.succeeded(), "another request was executed with a key that was used before")
	p.brokenIf(!other.refused(), "another request with the key got %s instead of a refusal", other.told())
	p.same("after the refusal of the other one, ", first, p.retry("the first request again", r))
}

func otherPath(p *probe) {
	p.undecidedIf(p.cfg.OtherURL == "", "name another operation that takes the same body with --other-url")
	change := func(r Request) Request {
		r.URL = strings.ReplaceAll(p.cfg.OtherURL, Unique, letters())
		return r
	}
	p.undecidedIf(!p.accepts(change), "the request to --other-url is refused under a key of its own, too")
	p.reused(change)
}

func otherCaller(p *probe) {
	p.undecidedIf(len(p.cfg.OtherCaller) == 0, "name another caller's headers with --other-header, such as 'Authorization: Bearer …'")
	change := func(r Request) Request {
		maps.Copy(r.Header, p.cfg.OtherCaller)
		return r
	}
	p.undecidedIf(!p.accepts(change), "the other caller is refused under a key of its own, too")
	r := p.fresh()
	first := p.send("the request", r)
	other := p.retry("another caller's request with the same key", change(p.keyed(r.Header.Get(p.cfg.KeyHeader))))
	sameBody := first.body == other.body && first.body != ""
	p.brokenIf(other.replayMark() != "" || (other.succeeded() && sameBody), "another caller got the answer of the first one")
	p.brokenIf(!other.succeeded(), "another caller got %s: the keys of callers are not kept apart", other.told())
}

// invalid is no JSON; where a body is no JSON, an empty one has to do.
const invalid = "{"

func errorThenKey(p *probe) {
	r := p.fresh()
	wrong := r
	wrong.Body = invalid
	refused := p.send("an invalid request", wrong)
	p.undecidedIf(!refused.refused(), "an invalid body got %s instead of 4xx", refused.told())
	p.counted(func() {
		first := p.retry("the right request with its key", r)
		p.brokenIf(first.status == refused.status && first.body == refused.body,
			"the key still has the error: a client that corrects its request cannot use it again")
		if first.status == http.StatusUnprocessableEntity || first.status == http.StatusConflict {
			again := p.send("the invalid request again", wrong)
			p.brokenIf(again.difference(refused) != "",
				"the key is stuck: the right request gets %s, and the invalid one %s", first.told(), again.told())
			p.undecidedIf(true, "the API binds the key to the invalid request (%s), which is safe", first.told())
		}
		p.brokenIf(!first.succeeded(), "the right request got %s", first.told())
		p.sameAgain("the right request again", r, first)
	})
}

func survives(p *probe) {
	p.undecidedIf(p.cfg.Between == nil,
		"name a command that disturbs the service between a request and its retry with --between, such as the flush of its cache")
	r := p.fresh()
	first := p.send("the request", r)
	err := p.cfg.Between(p.ctx)
	p.undecidedIf(err != nil, "--between: %v", err)
	p.sameAgain("the same request after the disturbance", r, first)
}
