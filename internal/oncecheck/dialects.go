package oncecheck

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
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

// traits are found out by what a rule shows. A dialect asks for a status, for a text in a member of
// the body, too, or for a header.
var traits = []struct {
	name, rule string
	seen       func(Exchange) string
	asked      map[string]string
}{
	{"no key", "no-key", Exchange.answered, map[string]string{
		"IETF": "400 type /", "ACP": "400 code idempotency_key_required", "oncepay": "400 code idempotency_key_missing",
	}},
	{"another body", "other-body", Exchange.answered, map[string]string{
		"IETF": "422 type /", "Stripe": "400 error.type idempotency_error", "ACP": "422 code idempotency_conflict", "UCP": "409",
		"oncepay": "422 code idempotency_key_reused",
	}},
	{"in progress", "retry-after", Exchange.answered, map[string]string{
		"IETF": "409", "Stripe": "409 error.code idempotency_key_in_use", "ACP": "409 code idempotency_in_flight",
		"oncepay": "409 code idempotency_in_progress",
	}},
	{"another path", "other-path", Exchange.answered, map[string]string{
		"Stripe": "4xx", "ACP": "2xx", "UCP": "2xx", "oncepay": "4xx",
	}},
	{"other member order", "member-order", Exchange.answered, map[string]string{
		"ACP": "2xx", "UCP": "409", "oncepay": "2xx",
	}},
	{"quoted key", "quoted-key", Exchange.answered, map[string]string{"IETF": "2xx", "oncepay": "2xx"}},
	{"mark of a replay", "replay", Exchange.mark, map[string]string{
		"Stripe": "Idempotent-Replayed", "ACP": "Idempotent-Replayed", "oncepay": "X-Idempotent-Replay",
	}},
	{"key in the answer", "replay", Exchange.echo, map[string]string{"Stripe": DefaultKeyHeader, "ACP": DefaultKeyHeader}},
}

// traitsOf compares what was seen with each dialect.
func traitsOf(shown map[string]Exchange) (list []Trait) {
	for _, one := range traits {
		e, known := shown[one.rule]
		if !known {
			continue
		}
		t := Trait{Name: one.name, Seen: one.seen(e), Speaks: map[string]string{}}
		for _, dialect := range Dialects {
			t.Speaks[dialect] = e.speaks(one.asked[dialect])
		}
		list = append(list, t)
	}
	return list
}

// speaks says whether the answer is what a dialect asks for, such as a header, 4xx, or
// "400 code idempotency_key_required": yes, no, or - if it asks for nothing.
func (e Exchange) speaks(asked string) string {
	status, rest, _ := strings.Cut(asked, " ")
	path, text, _ := strings.Cut(rest, " ")
	isStatus := strings.HasPrefix(strconv.Itoa(e.status), strings.TrimSuffix(status, "xx"))
	switch {
	case asked == "":
		return "-"
	case e.header.Get(asked) != "", isStatus && strings.Contains(e.member(path), text):
		return "yes"
	}
	return "no"
}

// answered is an answer in a few words, with its code if it has one.
func (e Exchange) answered() string {
	for _, path := range []string{"code", "error.code", "error.type", "error", "title"} {
		if text := e.member(path); text != "" {
			return fmt.Sprintf("%d %s", e.status, text)
		}
	}
	return e.told()
}

func (e Exchange) mark() string { return cmp.Or(e.replayMark(), "none") }

func (e Exchange) echo() string { return cmp.Or(e.header.Get(DefaultKeyHeader), "none") }
