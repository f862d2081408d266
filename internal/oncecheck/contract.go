package oncecheck

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
)

// extension is the name under which an OpenAPI operation has its [Contract].
const extension = "x-idempotency"

// Contract is what an API publishes about the keys of an operation.
type Contract struct {
	Key        string `json:"key"`          // required or optional
	Kept       int64  `json:"kept_seconds"` // how long an answer is kept
	Afterwards string `json:"afterwards"`   // what becomes of a key whose answer is no longer kept: refused or executed
}

// contractOf reads the extension of an operation; nil without one.
func contractOf(o *openapi3.Operation) (*Contract, error) {
	published, ok := o.Extensions[extension]
	if !ok {
		return nil, nil
	}
	var c Contract
	text, _ := json.Marshal(published) // it was read from JSON or YAML
	if err := json.Unmarshal(text, &c); err != nil || c.Kept <= 0 || !slices.Contains([]string{"required", "optional"}, c.Key) ||
		!slices.Contains([]string{"", "refused", "executed"}, c.Afterwards) {
		return nil, fmt.Errorf("%s needs kept_seconds, a positive integer; key, which is required or optional; "+
			"and may have afterwards, which is refused or executed; it is %.200s", extension, text)
	}
	return &c, nil
}

var expires = regexp.MustCompile("(?i)idempoten.*expir.*: ")

// expiry reads how long an answer is kept from a header of it, such as Idempotency-Key-Expires: a
// date, or seconds.
func (e Exchange) expiry(now time.Time) (time.Duration, bool) {
	_, text, _ := strings.Cut(e.headerLike(expires), ": ")
	if seconds, err := strconv.ParseInt(text, 10, 32); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	at, err := http.ParseTime(text)
	if err != nil {
		at, err = time.Parse(time.RFC3339, text)
	}
	return at.Sub(now), err == nil
}

// retention requires that the API publishes how long it keeps an answer, and that this is true as
// far as one run can see.
func retention(p *probe) {
	c := p.cfg.Contract
	if c != nil {
		keyless := p.fresh()
		keyless.Header.Del(p.cfg.KeyHeader)
		e := p.send(noteNoKey, keyless)
		p.brokenIf(e.succeeded() == (c.Key == "required"),
			"%s says that a key is %s, and a request without one got %s", extension, c.Key, e.told())
	}
	r := p.fresh()
	first := p.first(r)
	kept, published := first.expiry(time.Now())
	if c != nil {
		kept, published = time.Duration(c.Kept)*time.Second, true
	}
	p.undecidedIf(!published, "no header of the answer says how long it is kept; name an OpenAPI document whose operation has %s", extension)
	wait := kept * 4 / 5 // a server may forget a little earlier, not to forget too late
	p.undecidedIf(wait > p.cfg.Patience, "answers are kept for %s, it says; the end is after --patience, and was not waited for", kept)
	p.pause(wait)
	p.same(fmt.Sprintf("answers are kept for %s, it says, but after %s ", kept, wait),
		first, p.retry("the same request, shortly before its answer expires", r))
	p.afterwards(r, first, kept-wait)
}

// afterwards sends a request again when its answer may be forgotten. It may also be kept for
// longer.
func (p *probe) afterwards(r Request, first Exchange, wait time.Duration) {
	c := p.cfg.Contract
	if c == nil || c.Afterwards == "" {
		return
	}
	p.pause(wait + settling)
	late := p.retry("the same request, after its answer expired", r)
	executed := late.succeeded() && late.difference(first) != ""
	p.brokenIf((executed && c.Afterwards == "refused") || (late.refused() && c.Afterwards == "executed"),
		"%s says that the request is %s afterwards, and it got %s", extension, c.Afterwards, late.told())
}
