package nemesis

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/oncepay/oncepay/internal/stack"
)

// providerTimeout bounds a call to the provider's own switchboard (pspsim's /v1/trouble).
const providerTimeout = 5 * time.Second

// slowProvider has it answer later than the replicas are willing to wait, now and then together with the network's own time.
func (s *Scheduler) slowProvider() *Fault {
	r, delay := s.replica(), time.Duration(1500+s.random.IntN(3000))*time.Millisecond
	return &Fault{Name: fmt.Sprintf("provider answers %s after %s", r, delay), inject: s.do("slow", r, stack.PSP, delay.String()),
		heal: s.do("heal", r, stack.PSP)}
}

// failProvider has the provider answer 500: before it has charged, or although it has.
func (s *Scheduler) failProvider() *Fault {
	if s.random.IntN(2) == 0 {
		return s.trouble("provider fails", `{"answers":"fail"}`)
	}
	return s.trouble("provider charges and says that it failed", `{"answers":"fail_late"}`)
}

func (s *Scheduler) garbleProvider() *Fault {
	return s.trouble("provider charges and answers nonsense", `{"answers":"garbage"}`)
}

func (s *Scheduler) repeatWebhooks() *Fault {
	return s.trouble("webhooks at once, repeated and the newest first", `{"webhooks":"repeated"}`)
}

func (s *Scheduler) loseWebhooks() *Fault { return s.trouble("webhooks lost", `{"webhooks":"lost"}`) }

func (s *Scheduler) delayWebhooks() *Fault {
	return s.trouble("webhooks held back", `{"webhooks":"delayed"}`)
}

// trouble is the provider's own doing. It begins when it has met somebody, and tells how many answers and events it met in all.
func (s *Scheduler) trouble(name, body string) *Fault {
	f := &Fault{Name: name, Counts: true, Hold: pastLease, victims: []string{stack.PSP}, needs: true}
	f.inject = func(ctx context.Context) error {
		if _, err := s.provider(ctx, http.MethodPut, body); err != nil {
			return err
		}
		return until(ctx, func() bool {
			met, err := s.provider(ctx, http.MethodGet, "")
			return err == nil && met > 0
		})
	}
	f.heal = func(ctx context.Context) error {
		met, err := s.provider(ctx, http.MethodDelete, "")
		f.Hits += met
		return err
	}
	return f
}

func (s *Scheduler) provider(ctx context.Context, method, body string) (met int, err error) {
	ctx, cancel := context.WithTimeout(ctx, providerTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, "http://"+s.target.Stack.Addr(stack.PSP)+"/v1/trouble", strings.NewReader(body))
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
	var told struct{ Met int }
	return told.Met, json.NewDecoder(answer.Body).Decode(&told)
}
