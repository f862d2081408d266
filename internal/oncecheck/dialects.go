package oncecheck

import (
	"cmp"
	"fmt"
	"slices"
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

// shows reports whether an answer is what a dialect asks for.
type shows func(Exchange) bool

// traits are found out by the first answer in a rule to a request with a note.
var traits = []struct {
	name, rule, note string
	status           int // of the answer; 0: any
	seen             func(Exchange) string
	speaks           map[string]shows
}{
	{"no key", "no-key", noteNoKey, 0, answered, map[string]shows{
		"IETF": linked(400), "ACP": coded(400, "idempotency_key_required", "code"), "oncepay": coded(400, "idempotency_key_missing", "code"),
	}},
	{"another body", "other-body", noteOther, 0, answered, map[string]shows{
		"IETF": linked(422), "Stripe": coded(400, "idempotency_error", "error.type"), "ACP": coded(422, "idempotency_conflict", "code"),
		"UCP": status(409), "oncepay": coded(422, "idempotency_key_reused", "code"),
	}},
	{"in progress", "retry-after", noteAtOnce, 409, answered, map[string]shows{
		"IETF": status(409), "Stripe": coded(409, "idempotency_key_in_use", "error.code"),
		"ACP": coded(409, "idempotency_in_flight", "code"), "oncepay": coded(409, "idempotency_in_progress", "code"),
	}},
	{"another path", "other-path", noteOther, 0, answered, map[string]shows{
		"Stripe": Exchange.refused, "ACP": Exchange.succeeded, "UCP": Exchange.succeeded, "oncepay": Exchange.refused,
	}},
	{"other member order", "member-order", noteReordered, 0, answered, map[string]shows{
		"ACP": Exchange.succeeded, "UCP": status(409), "oncepay": Exchange.succeeded,
	}},
	{"quoted key", "quoted-key", noteThisKey, 0, answered, map[string]shows{
		"IETF": Exchange.succeeded, "oncepay": Exchange.succeeded,
	}},
	{"mark of a replay", "replay", noteAgain, 0, mark, map[string]shows{
		"Stripe": has("Idempotent-Replayed"), "ACP": has("Idempotent-Replayed"), "oncepay": has("X-Idempotent-Replay"),
	}},
	{"key in the answer", "replay", noteAgain, 0, echo, map[string]shows{
		"Stripe": has(DefaultKeyHeader), "ACP": has(DefaultKeyHeader),
	}},
}

// aDay is how long ACP, UCP and Stripe keep an answer at least, in seconds.
const aDay = 24 * 60 * 60

// traitsOf compares what was seen with each dialect.
func traitsOf(all []Exchange, published *Contract) (list []Trait) {
	for _, one := range traits {
		i := slices.IndexFunc(all, func(e Exchange) bool {
			return e.rule == one.rule && e.Note == one.note && e.status != 0 && (one.status == 0 || e.status == one.status)
		})
		if i >= 0 {
			list = append(list, traitOf(one.name, one.seen(all[i]), one.speaks, all[i]))
		}
	}
	if published != nil {
		keeps := func(Exchange) bool { return published.Kept >= aDay }
		list = append(list, traitOf("kept for a day", fmt.Sprintf("%d hours, it says", published.Kept/(60*60)),
			map[string]shows{"Stripe": keeps, "ACP": keeps, "UCP": keeps}, Exchange{}))
	}
	return list
}

func traitOf(name, seen string, speaks map[string]shows, e Exchange) Trait {
	t := Trait{Name: name, Seen: seen, Speaks: map[string]string{}}
	for _, dialect := range Dialects {
		t.Speaks[dialect] = "-"
	}
	for dialect, rule := range speaks {
		t.Speaks[dialect] = map[bool]string{true: "yes", false: "no"}[rule(e)]
	}
	return t
}

func status(code int) shows {
	return func(e Exchange) bool { return e.status == code }
}

// coded is a status with a text at a path of the JSON body.
func coded(code int, text, path string) shows {
	return func(e Exchange) bool { return e.status == code && e.member(path) == text }
}

// linked is a status whose answer links to a documentation.
func linked(code int) shows {
	return func(e Exchange) bool {
		described := strings.Contains(e.member("type"), "/") || strings.Contains(e.header.Get("Link"), "describedby")
		return e.status == code && described
	}
}

func has(header string) shows {
	return func(e Exchange) bool { return e.header.Get(header) != "" }
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
	return cmp.Or(e.replayMark(), "none")
}

func echo(e Exchange) string {
	if e.header.Get(DefaultKeyHeader) != "" {
		return "yes"
	}
	return "none"
}
