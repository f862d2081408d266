package console

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"

	"github.com/oncepay/oncepay/internal/stack"
)

// Who sends requests.
const (
	you           = "you"
	demonstration = "demonstration"
	trickler      = "trickle"
)

// tokens are the cards that the shopper may use, with what the provider does.
var tokens = []struct{ Token, Means string }{
	{"tok_visa", "approved"},
	{"tok_mastercard", "approved"},
	{"tok_slow_8s", "charged at once, answered after 8 s"},
	{"tok_slow_20s", "charged at once, answered after 20 s"},
	{"tok_declined", "declined"},
	{"tok_insufficient_funds", "declined: insufficient funds"},
	{"tok_charged_no_answer", "charged, and no answer the first time"},
	{"tok_charged_silent", "charged, no answer the first time, no event"},
	{"tok_error_first", "fails once before it charges"},
}

var tokenForm = regexp.MustCompile(`^tok_[a-z0-9_]{1,40}$`)

// shopper remembers the last payment, so that it can be sent again. Safe for concurrent use.
type shopper struct {
	mu   sync.Mutex
	last purchase
}

func (p *shopper) get() purchase {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

func (p *shopper) set(last purchase) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = last
}

// otherReplica is the one that did not get the last payment first.
func (s *Server) otherReplica() string {
	if s.journal.firstWorker(s.shopper.get().Key) == stack.API2 {
		return stack.API1
	}
	return stack.API2
}

// A shopperButton does something as the shopper, and returns what it did in one sentence. The
// answers to its requests come later: the page shows them.
type shopperButton struct {
	Name, Label, Hint string
	press             func(s *Server, ctx context.Context, token string) (string, error)
}

var shopperButtons = []shopperButton{
	{"pay", "Order and pay", "a new order, a new key", func(s *Server, ctx context.Context, token string) (string, error) {
		p, err := s.newPurchase(ctx, token)
		if err != nil {
			return "", err
		}
		s.sendAll(stack.Nginx, "pay with "+token, p)
		return "Sent: pay with " + token + ", key " + p.Key, nil
	}},
	{"retry", "Retry", "the same request, the same key", func(s *Server, _ context.Context, _ string) (string, error) {
		return s.again(stack.Nginx, "retry", func(p purchase) purchase { return p })
	}},
	{"double", "Double click", "a new order, its payment twice at once", func(s *Server, ctx context.Context, token string) (string, error) {
		p, err := s.newPurchase(ctx, token)
		if err != nil {
			return "", err
		}
		s.sendAll(stack.Nginx, "double click", p, p)
		return "Sent twice at once: pay with " + token + ", key " + p.Key, nil
	}},
	{"other-card", "Same key, other card", "another request under the same key", func(s *Server, _ context.Context, _ string) (string, error) {
		return s.again(stack.Nginx, "same key, other card", func(p purchase) purchase {
			if p.Token == "tok_mastercard" {
				p.Token = "tok_visa"
			} else {
				p.Token = "tok_mastercard"
			}
			return p
		})
	}},
	{"other-replica", "Retry through the other replica", "past nginx, to the one that did not get it first", func(s *Server, _ context.Context, _ string) (string, error) {
		return s.again(s.otherReplica(), "retry", func(p purchase) purchase { return p })
	}},
}

// serveShopper presses a button of the shopper.
func (s *Server) serveShopper(w http.ResponseWriter, r *http.Request) {
	token := r.PostFormValue("token")
	if !tokenForm.MatchString(token) {
		http.Error(w, "There is no such card.", http.StatusBadRequest)
		return
	}
	for _, button := range shopperButtons {
		if button.Name == r.PostFormValue("button") {
			said, err := button.press(s, context.WithoutCancel(r.Context()), token)
			respond(w, said, err)
			return
		}
	}
	http.Error(w, "There is no such button.", http.StatusBadRequest)
}

// newPurchase places an order and remembers how it will be paid.
func (s *Server) newPurchase(ctx context.Context, token string) (purchase, error) {
	if remedy := s.look(ctx).Services[stack.Nginx].Remedy; remedy != "" {
		return purchase{}, fmt.Errorf("nobody can order while nginx does not run: stack %s", remedy)
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	order, err := s.patient.order(ctx, "tee-black")
	if err != nil {
		return purchase{}, err
	}
	p := purchase{Order: order, Key: newKey("pay"), Token: token}
	s.shopper.set(p)
	s.showKey(ctx, p.Key)
	return p, nil
}

// again sends the last payment once more, changed or not.
func (s *Server) again(door, what string, change func(purchase) purchase) (string, error) {
	p := s.shopper.get()
	if p.Key == "" {
		return "", errNothingToRetry
	}
	p = change(p)
	s.sendAll(door, what, p)
	return "Sent to " + door + ": " + strings.ToLower(what) + ", " + p.Token + ", key " + p.Key, nil
}

// sendAll sends payments at once, and does not wait for their answers.
func (s *Server) sendAll(door, what string, payments ...purchase) {
	for _, p := range payments {
		s.background.Go(func() {
			_, _ = s.shop.pay(labelled(s.stopping, you, what), door, p) // the journal has the answer
		})
	}
}
