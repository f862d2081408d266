package fault

import (
	"context"
	"net/http"

	"github.com/oncepay/oncepay/internal/stack"
	"github.com/oncepay/oncepay/loadtest/shop"
)

var providerKinds = []Kind{
	{Name: "provider kill", command: "kill pspsim"},
	{Name: "provider pause", command: "pause pspsim"},
	{Name: "provider slow", command: "slow api-1..2 pspsim 1500..4500ms"}, // around the time that replicas wait
	// Before it has charged, or although it has.
	{Name: "provider fails", draw: trouble(`{"answers":"fail"}`, `{"answers":"fail_late"}`)},
	{Name: "provider answers garbage", draw: trouble(`{"answers":"garbage"}`)}, // and charges
	{Name: "provider events repeated and reordered", draw: trouble(`{"webhooks":"repeated"}`)},
	{Name: "provider events lost", draw: trouble(`{"webhooks":"lost"}`)},
	{Name: "provider events delayed", draw: trouble(`{"webhooks":"delayed"}`)},
}

// trouble is one of these, made by the provider itself, which counts the requests that meet it.
func trouble(kinds ...string) draw {
	return func(s *Scheduler, r *Run) {
		body := oneOf(s, kinds...)
		provider := func(ctx context.Context, method string) error {
			var count struct{ Met int }
			err := shop.Ask(ctx, method, "http://"+s.Stack.Addr(stack.PSP)+"/v1/trouble", body, &count)
			r.Hits += count.Met
			return err
		}
		r.Label += ": " + body
		r.Counts, r.Hold, r.victims = true, pastLease, []string{stack.PSP}
		r.Inject = func(ctx context.Context) error { return provider(ctx, http.MethodPut) }
		r.Heal = func(ctx context.Context) error { return provider(ctx, http.MethodDelete) }
	}
}

// mailKinds excuse nothing: a mail server in trouble delays mails and nothing else.
var mailKinds = []Kind{
	{Name: "mail server kill", command: "kill mail"},
	{Name: "mail server pause", command: "pause mail"},
	{Name: "mail server slow", command: "slow api-1..2 mail 500..3500ms"},
	{Name: "mail server full", victims: []string{stack.Mail}, draw: (*Scheduler).fillMail},
	// After a number of bytes that lies in the first three mails' answers.
	{Name: "mail answers cut in half", command: "cut api-1..2 mail 150..850"},
}

func (s *Scheduler) fillMail(r *Run) {
	full := func(method string) step {
		return func(ctx context.Context) error {
			return shop.Ask(ctx, method, "http://"+s.Stack.Ops(stack.Mail)+"/v1/full", "", nil)
		}
	}
	r.Inject, r.Heal = full(http.MethodPut), full(http.MethodDelete)
}
