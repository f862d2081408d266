package main

import (
	"fmt"
	"net/http"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// class is one kind of requests of the load, with a line of its own.
type class struct {
	name   string
	rate   int // a second; 0: the offered rate
	target func(*shop) vegeta.Targeter
}

// classes are what is sent side by side. Only new orders grow; what should get through in spite of
// them comes at a steady rate.
var classes = []class{
	{"new order", 0, newOrders},
	{"replay", 50, replays},
	{"key look-up", 20, lookUps},
	{"card payment", 20, payments},
	{"list", 20, lists},
}

func newOrders(s *shop) vegeta.Targeter {
	return func(t *vegeta.Target) error {
		o := s.newOrder()
		return s.fill(t, http.MethodPost, "/orders", o.key, o.body)
	}
}

func replays(s *shop) vegeta.Targeter {
	return func(t *vegeta.Target) error {
		o := s.orders[s.next.Add(1)%repeatable]
		return s.fill(t, http.MethodPost, "/orders", o.key, o.body)
	}
}

func lookUps(s *shop) vegeta.Targeter {
	return func(t *vegeta.Target) error {
		return s.fill(t, http.MethodGet, "/idempotency-keys/"+s.orders[s.next.Add(1)%repeatable].key, "", nil)
	}
}

// payments pay each order once; when all are paid, they ask for the stored answers.
func payments(s *shop) vegeta.Targeter {
	return func(t *vegeta.Target) error {
		o := s.orders[(s.paid.Add(1)-1)%repeatable]
		return s.fill(t, http.MethodPost, "/orders/"+o.id+"/payments", "pay-"+o.key, []byte(`{"method":{"type":"card","token":"tok_visa"}}`))
	}
}

func lists(s *shop) vegeta.Targeter {
	return func(t *vegeta.Target) error {
		return s.fill(t, http.MethodGet, fmt.Sprintf("/orders?customer_id=%s", s.customers[s.next.Add(1)%customers]), "", nil)
	}
}

func (s *shop) fill(t *vegeta.Target, method, path, key string, body []byte) error {
	t.Method, t.URL, t.Body, t.Header = method, s.cfg.BaseURL+"/v1"+path, body, s.header(key)
	return nil
}
