package oncecheck

import (
	"strings"
)

func noKey(p *probe) Verdict {
	r := p.fresh()
	r.Header.Del(p.cfg.KeyHeader)
	return p.refuses(r, noteNoKey)
}

func emptyKey(p *probe) Verdict { return p.refuses(p.keyed(""), "a request with an empty key") }

// refuses requires a 4xx: an executed request would be executed again by its retry.
func (p *probe) refuses(r Request, what string) Verdict {
	switch e := p.send(what, r); {
	case e.succeeded():
		return broken([]Exchange{e}, "%s was executed: its retry would be executed again", what)
	case !e.refused():
		return broken([]Exchange{e}, "%s got %s instead of 4xx", what, e.told())
	}
	return holds()
}

// asKey checks that a key is refused, or that it works as every other key.
func (p *probe) asKey(key string) (accepted bool, v Verdict) {
	r := p.keyed(key)
	first := p.send(noteThisKey, r)
	switch {
	case first.refused():
		return false, holds()
	case !first.succeeded():
		return false, broken([]Exchange{first}, "the key %q got %s instead of 4xx", shortened(key), first.told())
	}
	again := p.retry("the same request again", r)
	if why := p.difference(first, again); why != "" {
		return true, broken([]Exchange{first, again}, "with the key %q %s", shortened(key), why)
	}
	return true, holds()
}

func shortened(key string) string {
	if len(key) > 60 {
		return key[:40] + "…"
	}
	return key
}

// quotedKey sends an RFC 9651 string, as the IETF's draft asks for.
func quotedKey(p *probe) Verdict {
	_, v := p.asKey(`"` + p.cfg.newKey() + `"`)
	return v
}

// strange are ends of keys, from everyday to hostile. None contains a control character, which no
// HTTP client sends.
var strange = []string{" b", "é", "🙂", ",b", ";b=c", "%2F..%2F", "/../b", `\`, "'--", "{b}", ":*"}

func strangeKeys(p *probe) Verdict {
	for _, end := range strange {
		if _, v := p.asKey(p.cfg.newKey() + end + "z"); v.Outcome != Holds {
			return v
		}
	}
	return holds()
}

// long is more than any limit that is usual: 255 characters.
const long = 300

func longKey(p *probe) Verdict {
	key := p.cfg.newKey()
	key += strings.Repeat("k", long-len(key)-1)
	return p.apart(key+"a", key+"b")
}

func similarKeys(p *probe) Verdict {
	if p.cfg.UUIDKeys {
		return notDecided("two UUIDs that differ in case are one (RFC 9562)")
	}
	key := p.cfg.newKey()
	return p.apart(key, strings.ToUpper(key))
}

// apart requires that two keys are two keys. A refusal of either keeps them apart, too.
func (p *probe) apart(one, two string) Verdict {
	before, counts := p.effects()
	accepted, v := p.asKey(one)
	if v.Outcome != Holds || !accepted {
		return v
	}
	first := p.shown[len(p.shown)-1]
	second := p.retry("a request with the similar key", p.keyed(two))
	shown := []Exchange{first, second}
	if second.refused() && !second.busy() {
		return broken(shown, "the second key got %s: it was taken for the first one", second.told())
	}
	if !second.succeeded() {
		return broken(shown, "the second key got %s", second.told())
	}
	if second.replayMark() != "" {
		return broken(shown, "the second key got the answer of the first one")
	}
	if first.body != second.body {
		return holds()
	}
	if !counts {
		return notDecided(uncounted)
	}
	if after, _ := p.effects(); after-before != 2 {
		return broken(shown, "the second key got the answer of the first one, and there were %d effects instead of 2", after-before)
	}
	return holds()
}
