package oncecheck

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"
)

// repetitions is how often a request is repeated where once would do.
const repetitions = 3

func replay(p *probe) {
	r, first := p.first()
	for range repetitions {
		again := p.shows(p.retry("the same request again", r))
		why := first.difference(again)
		p.renews = why != "" && again.succeeded()
		p.brokenIf(p.renews, "%s; the other rules compare no answers that are successes", why)
		p.same("", first, again)
	}
}

func oneEffect(p *probe) {
	r, first := p.first()
	for range repetitions {
		p.sameAgain("the same request again", r, first)
	}
}

func memberOrder(p *probe) {
	r, first := p.first()
	body := gjson.Parse(r.Body)
	p.undecidedIf(!gjson.Valid(r.Body) || body.Type != gjson.JSON, "the body is no JSON object or list")
	r.Body = reorder(body)
	again := p.shows(p.retry("its members in another order, with other whitespace", r))
	p.same("", first, again)
}

// reorder writes JSON with the members of its objects in the opposite order, and with other
// whitespace.
func reorder(value gjson.Result) string {
	if value.Type != gjson.JSON {
		return value.Raw
	}
	var parts []string
	value.ForEach(func(name, part gjson.Result) bool {
		if value.IsArray() {
			parts = append(parts, reorder(part))
		} else {
			parts = slices.Insert(parts, 0, name.Raw+" \n: \n"+reorder(part))
		}
		return true
	})
	raw := strings.TrimSpace(value.Raw)
	return raw[:1] + " \n" + strings.Join(parts, ", \n") + " \n" + raw[len(raw)-1:]
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

// changeLeaf returns a JSON body whose n-th number or text, numbers first, is another one; empty if
// there are fewer.
func changeLeaf(body string, n int) string {
	if !gjson.Valid(body) {
		return ""
	}
	list := leaves(gjson.Parse(body))
	slices.SortStableFunc(list, func(a, b gjson.Result) int { return cmp.Compare(a.Type, b.Type) })
	if n >= len(list) {
		return ""
	}
	leaf := list[n]
	return body[:leaf.Index] + otherLeaf(leaf.Raw) + body[leaf.Index+len(leaf.Raw):]
}

// leaves are all numbers and texts.
func leaves(value gjson.Result) (list []gjson.Result) {
	value.ForEach(func(_, part gjson.Result) bool {
		switch part.Type {
		case gjson.JSON:
			list = append(list, leaves(part)...)
		case gjson.Number, gjson.String:
			list = append(list, part)
		}
		return true
	})
	return list
}

// otherLeaf returns a whole number plus one, a fraction with a digit more, or a longer text.
func otherLeaf(leaf string) string {
	if text, isText := strings.CutSuffix(leaf, `"`); isText {
		return text + ` b"`
	}
	if whole, err := strconv.ParseInt(leaf, 10, 64); err == nil {
		return strconv.FormatInt(whole+1, 10)
	}
	return leaf + "1"
}

// accepts reports whether a changed request succeeds under a key of its own.
func (p *probe) accepts(change func(Request) Request) bool {
	return p.retry("the other request, under a key of its own", change(p.fresh())).succeeded()
}

// reused sends a request, another one with its key, and the first one again.
func (p *probe) reused(change func(Request) Request) {
	r, first := p.first()
	other := p.shows(p.send("another request with the same key", change(r)))
	p.brokenIf(first.difference(other) == "", "another request got the answer of the first one, as if it had been executed")
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
	r, first := p.first()
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
	r, first := p.first()
	err := p.cfg.Between(p.ctx)
	p.undecidedIf(err != nil, "--between: %v", err)
	p.sameAgain("the same request after the disturbance", r, first)
}

const withoutKey = "a request without a key"

func noKey(p *probe) {
	r := p.fresh()
	r.Header.Del(p.cfg.KeyHeader)
	p.refuses(r, withoutKey)
}

func emptyKey(p *probe) { p.refuses(p.keyed(""), "a request with an empty key") }

// refuses requires a 4xx: an executed request would be executed again by its retry.
func (p *probe) refuses(r Request, what string) {
	e := p.shows(p.send(what, r))
	p.brokenIf(!e.refused(), "%s got %s instead of 4xx", what, e.told())
}

// asKey checks that a key is refused, or that it works as every other key.
func (p *probe) asKey(key string) (first Exchange, accepted bool) {
	p.from = len(p.all)
	r := p.keyed(key)
	first = p.shows(p.send("the request with this key", r))
	if first.refused() {
		return first, false
	}
	p.brokenIf(!first.succeeded(), "the key %.60q got %s instead of 4xx", key, first.told())
	p.same(fmt.Sprintf("with the key %.60q ", key), first, p.retry("the same request again", r))
	return first, true
}

// quotedKey sends an RFC 9651 string, as the IETF's draft asks for.
func quotedKey(p *probe) { p.asKey(`"` + uuid.NewString() + `"`) }

// strange are ends of keys, from everyday to hostile. None contains a control character, which no
// HTTP client sends.
var strange = []string{" b", "é", "🙂", ",b", ";b=c", "%2F..%2F", "/../b", `\`, "'--", "{b}", ":*"}

func strangeKeys(p *probe) {
	for _, end := range strange {
		p.asKey(uuid.NewString() + end + "z")
	}
}

// long is more than any limit that is usual: 255 characters.
const long = 300

func longKey(p *probe) {
	key := uuid.NewString()
	key += strings.Repeat("k", long-len(key)-1)
	p.apart(key+"a", key+"b")
}

func similarKeys(p *probe) {
	key := "oncecheck-" + letters() // two UUIDs that differ in case are one (RFC 9562)
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
	p.brokenIf(!second.succeeded(), "the second key got %s: it may have been taken for the first one", second.told())
	p.brokenIf(second.replayMark() != "", "the second key got the answer of the first one")
	same := first.body == second.body
	p.undecidedIf(same && p.cfg.Count == nil, uncounted)
	n := p.effects() - before
	p.brokenIf(same && n != 2, "the second key got the answer of the first one, and there were %d effects instead of 2", n)
}

// sentAtOnce sends a request n times side by side.
func sentAtOnce(n int) func(*probe) {
	return func(p *probe) {
		_, last := p.atOnce(n, p.fresh())
		good := slices.DeleteFunc(last, func(e Exchange) bool { return !e.succeeded() })
		p.brokenIf(len(good) == 0, "nobody got an answer that is a success")
		for _, e := range good {
			p.same("two clients of one request got different answers: ", good[0], e)
		}
	}
}

// crowd is how many requests at once make some of them wait.
const crowd = 8

const notTold = "nobody was told to retry; a request that takes longer would show it"

// politeRetry requires that everybody who is told to retry gets the answer in the end.
func politeRetry(p *probe) {
	r := p.fresh()
	first, last := p.atOnce(crowd, r)
	answer := p.outwait("the same request afterwards", r)
	for _, e := range last {
		p.same("a client that retried politely did not get the answer: ", answer, e)
	}
	p.undecidedIf(!slices.ContainsFunc(first, Exchange.undecided), notTold)
}

// retryAfter requires the header where a client is told to retry, and that it is true.
func retryAfter(p *probe) {
	r := p.fresh()
	told := p.burst(crowd, r)
	told = slices.DeleteFunc(told, func(e Exchange) bool { return !e.busy() && e.status != http.StatusConflict })
	p.undecidedIf(len(told) == 0, notTold)
	if i := slices.IndexFunc(told, func(e Exchange) bool { return e.status == http.StatusConflict }); i >= 0 {
		p.shows(told[i])
	}
	i := max(0, slices.IndexFunc(told, func(e Exchange) bool { return e.header.Get("Retry-After") != "" }))
	pause, ok := told[i].retryAfter()
	p.brokenIf(!ok, "%s without Retry-After in seconds: the client has to guess", told[i].told())
	p.undecidedIf(pause > p.cfg.Patience, "Retry-After is %s, which is longer than --patience", pause)
	p.pause(pause)
	again := p.send("the same request, after Retry-After", r)
	p.brokenIf(again.busy(), "Retry-After was %s, and after it the answer was %s again", pause, again.told())
}

// again repeats a request whose answer did not arrive. A later retry gets the same answer.
func (p *probe) again(r Request) { p.sameAgain("the same request again", r, p.outwait("the retry", r)) }

// lostAnswer closes the connection after the first byte of the answer, in its middle, and before
// its last byte.
func lostAnswer(p *probe) {
	sample := p.send("the request, to know how long the answer is", p.fresh())
	for _, size := range []int{1, len(sample.Response) / 2, len(sample.Response) - 1} {
		p.counted(func() {
			r := p.fresh()
			p.sendBy(p.losing(size), "the request, whose answer is lost on the way", r)
			p.again(r)
		})
	}
}

// losing sends a request over a connection of its own, and closes that when so many bytes of the
// answer have arrived: without any, when the kernel has the request. A canceled context would be no
// substitute: it may end net/http's Transport before the request has left its buffer.
func (p *probe) losing(size int) way {
	return func(q *http.Request) (*http.Response, error) {
		conn, err := p.dial(q)
		if err != nil {
			return nil, err
		}
		defer func() { _ = conn.Close() }()
		defer context.AfterFunc(q.Context(), func() { _ = conn.Close() })()
		q.Close = true
		if err := q.Write(conn); err != nil {
			return nil, err
		}
		_, err = io.CopyN(io.Discard, conn, int64(size))
		return nil, cmp.Or(err, errors.New("the client closed the connection"))
	}
}

// dial connects to the server of a request.
func (p *probe) dial(q *http.Request) (net.Conn, error) {
	address := net.JoinHostPort(q.URL.Hostname(), cmp.Or(q.URL.Port(), q.URL.Scheme))
	if q.URL.Scheme == "https" {
		return (&tls.Dialer{Config: p.pool.TLSClientConfig}).DialContext(q.Context(), "tcp", address)
	}
	return new(net.Dialer).DialContext(q.Context(), "tcp", address)
}

// parts and betweenParts make a slow client: it needs a second for its body.
const (
	parts        = 4
	betweenParts = 200 * time.Millisecond
)

func slowClient(p *probe) {
	r := p.fresh()
	first := p.sendBy(p.slowly, "the request, sent slowly", r)
	p.brokenIf(!first.unanswered() && !first.succeeded(), "a client that sends slowly got %s", first.told())
	last := p.outwait("the same request again", r)
	if first.succeeded() { // or it was too slow for the server, and its retry is not
		p.same("", first, last)
	}
}

func (p *probe) slowly(q *http.Request) (*http.Response, error) {
	if q.ContentLength > 0 {
		q.Body = slowBody{q.Body, int(q.ContentLength+parts-1) / parts}
	}
	return p.pool.RoundTrip(q)
}

// slowBody pauses before each part.
type slowBody struct {
	io.ReadCloser

	size int // of a part, in bytes
}

func (b slowBody) Read(to []byte) (int, error) {
	time.Sleep(betweenParts)
	return b.ReadCloser.Read(to[:min(b.size, len(to))])
}

func clientLeaves(p *probe) {
	r := p.fresh()
	p.sendBy(p.losing(0), "the request, whose client leaves when it has sent it", r)
	p.pause(settling) // or the retry may overtake it
	p.again(r)
}

// retention requires that what the API publishes is true as far as one run can see.
func retention(p *probe) {
	c := p.cfg.Contract
	p.undecidedIf(c == nil, "name an OpenAPI document whose operation has %s", extension)
	keyless := p.fresh()
	keyless.Header.Del(p.cfg.KeyHeader)
	e := p.send(withoutKey, keyless)
	p.brokenIf(e.succeeded() == (c.Key == "required"),
		"%s says that a key is %s, and a request without one got %s", extension, c.Key, e.told())
	kept := time.Duration(c.Kept) * time.Second
	soon := kept * 4 / 5 // a server may forget a little earlier, not to forget too late
	p.undecidedIf(soon > p.cfg.Patience,
		"answers are kept for %s, it says; the end is after --patience, and was not waited for", kept)
	r, first := p.first()
	p.pause(soon)
	p.same(fmt.Sprintf("answers are kept for %s, it says, but after %s ", kept, soon),
		first, p.retry("the same request, shortly before its answer expires", r))
	p.afterwards(r, first, kept-soon)
}

// afterwards sends a request again when its answer may be forgotten. It may also be kept for
// longer.
func (p *probe) afterwards(r Request, first Exchange, wait time.Duration) {
	c := p.cfg.Contract
	p.pause(wait + settling)
	late := p.retry("the same request, after its answer expired", r)
	executed := late.succeeded() && late.difference(first) != ""
	p.brokenIf((executed && c.Afterwards == "refused") || (late.refused() && c.Afterwards == "executed"),
		"%s says that the request is %s afterwards, and it got %s", extension, c.Afterwards, late.told())
}
