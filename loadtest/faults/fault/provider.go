package fault

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/oncepay/oncepay/internal/stack"
)

var providerKinds = []Kind{
	{Name: "provider kill", Victim: Provider, draw: process("kill", stack.PSP, "start")},
	{Name: "provider pause", Victim: Provider, draw: process("pause", stack.PSP, "resume")},
	{Name: "provider slow", Victim: Provider, draw: (*Scheduler).slowProvider},
	{Name: "provider fails", Victim: Provider, draw: (*Scheduler).failProvider},
	{
		Name: "provider answers garbage", Victim: Provider,
		draw: trouble("provider charges and answers garbage", `{"answers":"garbage"}`),
	},
	{
		Name: "provider events repeated and reordered", Victim: Provider,
		draw: trouble("provider events at once, repeated, newest first", `{"webhooks":"repeated"}`),
	},
	{
		Name: "provider events lost", Victim: Provider,
		draw: trouble("provider events lost", `{"webhooks":"lost"}`),
	},
	{
		Name: "provider events delayed", Victim: Provider,
		draw: trouble("provider events delayed", `{"webhooks":"delayed"}`),
	},
}

// providerTimeout bounds a call to the provider's own switchboard (pspsim's /v1/trouble).
const providerTimeout = 5 * time.Second

// slowProvider answers around the time that the replicas are willing to wait.
func (s *Scheduler) slowProvider() *Run {
	replica, delay := s.replica(), time.Duration(1500+s.random.IntN(3000))*time.Millisecond
	return &Run{
		Label:  fmt.Sprintf("provider answers %s after %s", replica, delay),
		inject: s.do("slow", replica, stack.PSP, delay.String()), heal: s.do("heal", replica, stack.PSP),
	}
}

// failProvider has the provider answer 500: before it has charged, or although it has.
func (s *Scheduler) failProvider() *Run {
	if s.random.IntN(2) == 0 {
		return trouble("provider fails", `{"answers":"fail"}`)(s)
	}
	return trouble("provider charges and answers 500", `{"answers":"fail_late"}`)(s)
}

// trouble is made by the provider itself. Injecting ends when it has met a request; Heal counts all
// that it met.
func trouble(label, body string) func(*Scheduler) *Run {
	return func(s *Scheduler) *Run {
		r := &Run{Label: label, Counts: true, Hold: pastLease, victims: []string{stack.PSP}, traffic: true}
		r.inject = func(ctx context.Context) error {
			if _, err := s.provider(ctx, http.MethodPut, body); err != nil {
				return err
			}
			return until(ctx, func() bool {
				met, err := s.provider(ctx, http.MethodGet, "")
				return err == nil && met > 0
			})
		}
		r.heal = func(ctx context.Context) error {
			met, err := s.provider(ctx, http.MethodDelete, "")
			r.Hits += met
			return err
		}
		return r
	}
}

func (s *Scheduler) provider(ctx context.Context, method, body string) (met int, err error) {
	ctx, cancel := context.WithTimeout(ctx, providerTimeout)
	defer cancel()
	url := "http://" + s.target.Stack.Addr(stack.PSP) + "/v1/trouble"
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Close = true // or its idle connections outlive the provider
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("the provider answers %s", answer.Status)
	}
	var count struct{ Met int }
	err = json.NewDecoder(answer.Body).Decode(&count)
	return count.Met, err
}
