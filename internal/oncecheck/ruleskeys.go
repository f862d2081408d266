package oncecheck

import (
	"fmt"
	"strings"
)

func noKey(p *probe) {
	r := p.fresh()
	r.Header.Del(p.cfg.KeyHeader)
	p.refuses(r, noteNoKey)
}

func emptyKey(p *probe) { p.refuses(p.keyed(""), "a request with an empty key") }

// refuses requires a 4xx: an executed request would be executed again by its retry.
func (p *probe) refuses(r Request, what string) {
	e := p.send(what, r)
	p.brokenIf(e.succeeded(), "%s was executed: its retry would be executed again", what)
	p.brokenIf(!e.refused(), "%s got %s instead of 4xx", what, e.told())
}

// asKey checks that a key is refused, or that it works as every other key.
func (p *probe) asKey(key string) (first Exchange, accepted bool) {
	p.from = len(p.all)
	r := p.keyed(key)
	first = p.send(noteThisKey, r)
	if first.refused() {
		return first, false
	}
	p.brokenIf(!first.succeeded(), "the key %.60q got %s instead of 4xx", key, first.told())
	p.same(fmt.Sprintf("with the key %.60q ", key), first, p.retry("the same request again", r))
	return first, true
}

// quotedKey sends an RFC 9651 string, as the IETF's draft asks for.
func quotedKey(p *probe) { p.asKey(`"` + p.cfg.newKey() + `"`) }

// strange are ends of keys, from everyday to hostile. None contains a control character, which no
// HTTP client sends.
var strange = []string{" b", "é", "🙂", ",b", ";b=c", "%2F..%2F", "/../b", `\`, "'--", "{b}", ":*"}

func strangeKeys(p *probe) {
	for _, end := range strange {
		p.asKey(p.cfg.newKey() + end + "z")
	}
}

// long is more than any limit that is usual: 255 characters.
const long = 300

func longKey(p *probe) {
	key := p.cfg.newKey()
	key += strings.Repeat("k", long-len(key)-1)
	p.apart(key+"a", key+"b")
}

func similarKeys(p *probe) {
	p.undecidedIf(p.cfg.UUIDKeys, "two UUIDs that differ in case are one (RFC 9562)")
	key := p.cfg.newKey()
	p.apart(key, strings.ToUpper(key))
}

// apart requires that two keys are two keys. A refusal of either keeps them apart, too.
func (p *probe) apart(one, two string) {
	before := p.effects()
	first, accepted := p.asKey(one)
	if !accepted {
		return
	}
	second := p.retry("a request with the similar key", p.keyed(two))
	p.brokenIf(second.refused() && !second.busy(), "the second key got %s: it was taken for the first one", second.told())
	p.brokenIf(!second.succeeded(), "the second key got %s", second.told())
	p.brokenIf(second.replayMark() != "", "the second key got the answer of the first one")
	if first.body != second.body {
		return
	}
	p.undecidedIf(p.cfg.Count == nil, uncounted)
	n := p.effects() - before
	p.brokenIf(n != 2, "the second key got the answer of the first one, and there were %d effects instead of 2", n)
}
