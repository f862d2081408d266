package oncecheck

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// Notes of exchanges that show which dialect an API speaks.
const (
	noteNoKey     = "a request without a key"
	noteThisKey   = "the request with this key"
	noteAgain     = "the same request again"
	noteOther     = "another request with the same key"
	noteReordered = "its members in another order, with other whitespace"
	noteAtOnce    = "one of many at once"
)

// Dialects are the ways of answering that are told apart: the IETF's draft, Stripe, ACP, UCP, and
// that of oncepay. idempotency/dialects.md quotes their rules.
var Dialects = []string{"IETF", "Stripe", "ACP", "UCP", "oncepay"}

// Trait is one thing that dialects do in different ways.
type Trait struct {
	Name   string            `json:"name"`
	Seen   string            `json:"seen"`   // what this API does
	Speaks map[string]string `json:"speaks"` // by dialect: yes, no, or - if it has no such rule
}

// trait is how a Trait is found out: by the first exchange of a rule with a note.
type trait struct {
	name, rule, note string
	status           int // of the exchange; 0: any
	seen             func(Exchange) string
	speaks           map[string]func(Exchange) bool
}

var traits = []trait{
	{"no key", "no-key", noteNoKey, 0, answered, map[string]func(Exchange) bool{
		"IETF": linked(400), "ACP": coded(400, "idempotency_key_required", "code"), "oncepay": coded(400, "idempotency_key_missing", "code"),
	}},
	{"another body", "other-body", noteOther, 0, answered, map[string]func(Exchange) bool{
		"IETF": linked(422), "Stripe": coded(400, "idempotency_error", "error.type"), "ACP": coded(422, "idempotency_conflict", "code"),
		"UCP": status(409), "oncepay": coded(422, "idempotency_key_reused", "code"),
	}},
	{"in progress", "retry-after", noteAtOnce, http.StatusConflict, answered, map[string]func(Exchange) bool{
		"IETF": status(409), "Stripe": coded(409, "idempotency_key_in_use", "error.code"),
		"ACP": coded(409, "idempotency_in_flight", "code"), "oncepay": coded(409, "idempotency_in_progress", "code"),
	}},
	{"another path", "other-path", noteOther, 0, answered, map[string]func(Exchange) bool{
		"Stripe": Exchange.refused, "ACP": Exchange.succeeded, "UCP": Exchange.succeeded, "oncepay": Exchange.refused,
	}},
	{"other member order", "member-order", noteReordered, 0, answered, map[string]func(Exchange) bool{
		"ACP": Exchange.succeeded, "UCP": status(409), "oncepay": Exchange.succeeded,
	}},
	{"quoted key", "quoted-key", noteThisKey, 0, answered, map[string]func(Exchange) bool{
		"IETF": Exchange.succeeded, "oncepay": Exchange.succeeded,
	}},
	{"mark of a replay", "replay", noteAgain, 0, mark, map[string]func(Exchange) bool{
		"Stripe": has("Idempotent-Replayed"), "ACP": has("Idempotent-Replayed"), "oncepay": has("X-Idempotent-Replay"),
	}},
	{"key in the answer", "replay", noteAgain, 0, echo, map[string]func(Exchange) bool{
		"Stripe": has(DefaultKeyHeader), "ACP": has(DefaultKeyHeader),
	}},
}

// aDay is how long ACP, UCP and Stripe keep an answer at least, in seconds.
const aDay = 24 * 60 * 60

// traitsOf compares what was seen with each dialect.
func traitsOf(all []Exchange, published *Contract) (list []Trait) {
	for _, one := range traits {
		e, found := one.find(all)
		if !found {
			continue
		}
		t := Trait{Name: one.name, Seen: one.seen(e), Speaks: map[string]string{}}
		for _, name := range Dialects {
			rule, has := one.speaks[name]
			t.Speaks[name] = spoken(has, has && rule(e))
		}
		list = append(list, t)
	}
	if published == nil {
		return list
	}
	kept := Trait{Name: "kept for a day", Seen: fmt.Sprintf("%d hours, it says", published.Kept/(60*60)), Speaks: map[string]string{}}
	for _, name := range Dialects {
		kept.Speaks[name] = spoken(name != "IETF" && name != "oncepay", published.Kept >= aDay)
	}
	return append(list, kept)
}

func (c trait) find(all []Exchange) (Exchange, bool) {
	for _, e := range all {
		if e.rule == c.rule && e.Note == c.note && e.status != 0 && (c.status == 0 || e.status == c.status) {
			return e, true
		}
	}
	return Exchange{}, false
}

func spoken(hasRule, holds bool) string {
	switch {
	case !hasRule:
		return "-"
	case holds:
		return "yes"
	}
	return "no"
}

func status(code int) func(Exchange) bool {
	return func(e Exchange) bool { return e.status == code }
}

// coded is a status with a text at a path of the JSON body.
func coded(code int, text, path string) func(Exchange) bool {
	return func(e Exchange) bool { return e.status == code && e.member(path) == text }
}

// linked is a status whose answer links to a documentation.
func linked(code int) func(Exchange) bool {
	return func(e Exchange) bool {
		kind := e.member("type")
		return e.status == code && (strings.Contains(kind, "/") || strings.Contains(e.header.Get("Link"), "describedby"))
	}
}

func has(header string) func(Exchange) bool {
	return func(e Exchange) bool { return e.header.Get(header) != "" }
}

// member is the text at a path of the JSON body, or none.
func (e Exchange) member(path string) string {
	var value any
	_ = json.Unmarshal([]byte(e.body), &value) // what is no JSON has no members
	value, _ = valueAt(value, path)
	text, _ := value.(string)
	return text
}

// answered is an answer in a few words, with its code if it has one.
func answered(e Exchange) string {
	for _, path := range []string{"code", "error.code", "error.type", "error", "title"} {
		if text := e.member(path); text != "" {
			return fmt.Sprintf("%d %s", e.status, text)
		}
	}
	return e.told()
}

func mark(e Exchange) string {
	if name := e.replayMark(); name != "" {
		return name + ": true"
	}
	return "none"
}

func echo(e Exchange) string {
	if e.header.Get(DefaultKeyHeader) != "" {
		return "yes"
	}
	return "none"
}
