package fault

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/oncepay/oncepay/internal/stack"
)

var providerKinds = each([]Kind{
	{Name: "provider kill", draw: process("kill", stack.PSP, "start")},
	{Name: "provider pause", draw: process("pause", stack.PSP, "resume")},
	{Name: "provider slow", draw: slowAnswers("provider", stack.PSP, 1500)}, // around the time that replicas wait
	{Name: "provider fails", draw: (*Scheduler).failProvider},
	{Name: "provider answers garbage", draw: trouble("provider charges and answers garbage", `{"answers":"garbage"}`)},
	{
		Name: "provider events repeated and reordered",
		draw: trouble("provider events at once, repeated, newest first", `{"webhooks":"repeated"}`),
	},
	{Name: "provider events lost", draw: trouble("provider events lost", `{"webhooks":"lost"}`)},
	{Name: "provider events delayed", draw: trouble("provider events delayed", `{"webhooks":"delayed"}`)},
}, func(k *Kind) { k.Victim = Provider })

// failProvider has the provider answer 500: before it has charged, or although it has.
func (s *Scheduler) failProvider() *Run {
	if s.random.IntN(2) == 0 {
		return trouble("provider fails", `{"answers":"fail"}`)(s)
	}
	return trouble("provider charges and answers 500", `{"answers":"fail_late"}`)(s)
}

// trouble is made by the provider itself. Injecting ends when it has met a request; Heal counts all
// that it met.
func trouble(label, body string) draw {
	return func(s *Scheduler) *Run {
		provider := func(ctx context.Context, method, body string) (met int, err error) {
			var count struct{ Met int }
			answer, err := call(ctx, method, s.Stack.Addr(stack.PSP), "/v1/trouble", body)
			if err == nil {
				err = json.Unmarshal(answer, &count)
			}
			return count.Met, err
		}
		r := &Run{Label: label, Counts: true, Hold: pastLease, victims: []string{stack.PSP}, traffic: true}
		r.inject = func(ctx context.Context) error {
			if _, err := provider(ctx, http.MethodPut, body); err != nil {
				return err
			}
			return until(ctx, func() bool {
				met, err := provider(ctx, http.MethodGet, "")
				return err == nil && met > 0
			})
		}
		r.heal = func(ctx context.Context) error {
			met, err := provider(ctx, http.MethodDelete, "")
			r.Hits += met
			return err
		}
		return r
	}
}

// mailKinds excuse nothing: a mail server in trouble delays mails and nothing else.
var mailKinds = each([]Kind{
	{Name: "mail server kill", draw: process("kill", stack.Mail, "start")},
	{Name: "mail server pause", draw: process("pause", stack.Mail, "resume")},
	{Name: "mail server slow", draw: slowAnswers("mail server", stack.Mail, 500)},
	{Name: "mail server full", draw: (*Scheduler).fillMail},
	{Name: "mail answers cut in half", draw: (*Scheduler).cutMail},
}, func(k *Kind) { k.Victim = Mail })

// cutMail ends connections after a number of bytes that lies in the first three mails' answers.
func (s *Scheduler) cutMail() *Run {
	replica, bytes := s.replica(), 150+s.random.IntN(700)
	return s.link("cut answers of the mail server to "+replica, "cut", replica, stack.Mail, fmt.Sprint(bytes))
}

func (s *Scheduler) fillMail() *Run {
	full := func(method string) step {
		return func(ctx context.Context) error {
			_, err := call(ctx, method, s.Stack.Ops(stack.Mail), "/v1/full", "")
			return err
		}
	}
	return &Run{
		Label: "mail server is full", victims: []string{stack.Mail},
		inject: full(http.MethodPut), heal: full(http.MethodDelete),
	}
}
