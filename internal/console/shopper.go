package console

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/oncepay/oncepay/internal/stack"
)

// Who sends requests.
const (
	you           = "you"
	demonstration = "demonstration"
)

// shopIt presses a button of the shopper. It does not wait for the answers to the payments: the
// attempts get them.
func (s *Server) shopIt(ctx context.Context, form url.Values) (said string, err error) {
	button, token := form.Get("button"), form.Get("token")
	var p purchase
	var first string // replica
	s.change(func(now *state) { p, first = now.bought, now.firstWorker(now.bought.Key) })
	door, what, times := stack.Nginx, "retry", 1
	switch button {
	case "pay":
		what = "pay with " + token
		p, err = s.buy(ctx, token)
	case "double":
		what, times = "double click", 2
		p, err = s.buy(ctx, token)
	case "other-card":
		what = "same key, other card"
		if p.Token == "tok_mastercard" {
			p.Token = "tok_visa"
		} else {
			p.Token = "tok_mastercard"
		}
	case "other-replica": // the one that did not get it first
		door = stack.API2
		if first == door {
			door = stack.API1
		}
	case "retry":
	default:
		err = errors.New("there is no such button")
	}
	switch {
	case err != nil:
		return "", err
	case p.Key == "":
		return "", errors.New("there is no payment yet: order and pay first")
	}
	for range times {
		s.background.Go(func() { _, _ = s.pay(s.stopping, you, what, door, p) })
	}
	return fmt.Sprintf("Sent to %s: %s, %s, key %s", door, what, p.Token, p.Key), nil
}

// buy places an order, and remembers how it will be paid: it can be sent again.
func (s *Server) buy(ctx context.Context, token string) (p purchase, err error) {
	if remedy := s.look(ctx).Services[stack.Nginx].Remedy; remedy != "" {
		return p, fmt.Errorf("nobody can order while nginx does not run: stack %s", remedy)
	}
	p, err = s.patient.order(ctx, newKey("pay"), token)
	if err == nil {
		s.change(func(now *state) { now.bought = p })
		s.showKey(ctx, p.Key)
	}
	return p, err
}
