package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/oncepay/oncepay/loadtest/audit"
)

const (
	// maxFinished bounds what is remembered for replays and mismatches.
	maxFinished = 2000
	maxQuantity = 3
)

// shot is one planned request.
type shot struct {
	audit.Request
	kind kind
	base string // URL of nginx or of a replica
	path string
	body []byte
}

// script decides what each request of the load is, from what has been
// answered so far. Safe for concurrent use: vegeta's workers ask it.
type script struct {
	cfg  config
	shop *shop

	mu       sync.Mutex
	started  uint64 // requests handed out; also names them
	pairs    int
	pair     *shot            // waits for its duplicate
	inFlight map[uint64]*shot // by name
	unpaid   []audit.Request  // acknowledged orders; Order holds their ID
	finished []*shot
}

func newScript(cfg config, s *shop) *script {
	return &script{cfg: cfg, shop: s, inFlight: map[uint64]*shot{}}
}

// next is a vegeta.Targeter. The shot's name travels as the URL's fragment,
// which vegeta hands back with the result and never puts on the wire.
func (s *script) next(target *vegeta.Target) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := s.started
	s.started++
	shot := s.plan(slot(name), name)
	s.inFlight[name] = shot

	target.Method = http.MethodPost
	target.URL = shot.base + shot.path + "#" + strconv.FormatUint(name, 10)
	target.Body = shot.body
	target.Header = http.Header{
		"Authorization":   {"Bearer " + s.cfg.APIKey},
		"Content-Type":    {"application/json"},
		"Idempotency-Key": {shot.Key},
	}
	return nil
}

// take returns the shot that a result belongs to.
func (s *script) take(result *vegeta.Result) (*shot, error) {
	u, err := url.Parse(result.URL)
	if err != nil {
		return nil, fmt.Errorf("result of %q: %w", result.URL, err)
	}
	name, err := strconv.ParseUint(u.Fragment, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("result of %q: %w", result.URL, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	shot, ok := s.inFlight[name]
	if !ok {
		return nil, fmt.Errorf("result of %q, which is not in flight", result.URL)
	}
	delete(s.inFlight, name)
	return shot, nil
}

// acknowledged makes an answered shot available to later ones.
func (s *script) acknowledged(shot *shot, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if shot.Expect == audit.Replay || shot.kind == duplicate {
		return
	}
	if shot.Operation == audit.Order {
		order := shot.Request
		order.Order = id
		s.unpaid = append(s.unpaid, order)
	}
	if len(s.finished) < maxFinished {
		s.finished = append(s.finished, shot)
	} else {
		s.finished[rand.IntN(maxFinished)] = shot
	}
}

// plan makes the shot of a slot. Where nothing is there to pay or to repeat
// yet, it is an order instead.
func (s *script) plan(k kind, name uint64) *shot {
	switch k {
	case duplicate:
		return s.duplicate()
	case replay, mismatch:
		if len(s.finished) == 0 {
			return s.order(newOrder, name)
		}
		first := s.finished[rand.IntN(len(s.finished))]
		if k == replay {
			return s.replay(first, name)
		}
		return s.mismatch(first)
	case cardPay, walletPay:
		if len(s.unpaid) == 0 {
			return s.order(newOrder, name)
		}
		return s.payment(k, name)
	case pairCard, pairWallet:
		if len(s.unpaid) == 0 {
			return s.race(s.order(pairOrder, name))
		}
		return s.race(s.payment(k, name))
	case pairOrder:
		return s.race(s.order(pairOrder, name))
	default:
		return s.order(newOrder, name)
	}
}

func (s *script) key(name uint64) string {
	return fmt.Sprintf("stress-%s-%d", s.cfg.run, name)
}

func (s *script) order(k kind, name uint64) *shot {
	customer := s.shop.customers[rand.IntN(len(s.shop.customers))]
	items, total := map[string]int64{}, int64(0)
	for range 1 + rand.IntN(2) {
		p := s.shop.products[rand.IntN(len(s.shop.products))]
		if _, chosen := items[p.sku]; !chosen {
			items[p.sku] = 1 + rand.Int64N(maxQuantity)
			total += items[p.sku] * p.price
		}
	}
	return &shot{
		Request: audit.Request{
			Key: s.key(name), Operation: audit.Order, Expect: audit.First,
			Customer: customer, Amount: total, Items: items,
		},
		kind: k, base: s.cfg.BaseURL, path: "/v1/orders", body: orderBody(customer, items),
	}
}

func (s *script) payment(k kind, name uint64) *shot {
	order := s.unpaid[0]
	s.unpaid = s.unpaid[1:]
	op := audit.Card
	if k == walletPay || k == pairWallet {
		op = audit.Wallet
	}
	return &shot{
		Request: audit.Request{
			Key: s.key(name), Operation: op, Expect: audit.First,
			Customer: order.Customer, Order: order.Order, Amount: order.Amount,
		},
		kind: k, base: s.cfg.BaseURL, path: "/v1/orders/" + order.Order + "/payments", body: paymentBody(op, name),
	}
}

// race sends the shot to one replica and prepares its duplicate for the other.
func (s *script) race(first *shot) *shot {
	replicas := [2]string{s.cfg.API1URL, s.cfg.API2URL}
	first.Expect = audit.Raced
	second := *first
	second.kind = duplicate
	first.base, second.base = replicas[s.pairs%2], replicas[(s.pairs+1)%2]
	s.pairs++
	s.pair = &second
	return first
}

func (s *script) duplicate() *shot {
	second := s.pair
	s.pair = nil
	return second
}

func (s *script) replay(first *shot, name uint64) *shot {
	again := *first
	again.kind, again.Expect, again.base = replay, audit.Replay, s.cfg.BaseURL
	if again.Operation != audit.Order {
		again.body = paymentBody(again.Operation, name) // with another nonce
	}
	return &again
}

// mismatch asks for more of the same order, or pays in the other way.
func (s *script) mismatch(first *shot) *shot {
	other := *first
	other.kind, other.Expect, other.base = mismatch, audit.Mismatch, s.cfg.BaseURL
	switch first.Operation {
	case audit.Order:
		items := maps.Clone(first.Items)
		for sku := range items {
			items[sku]++
		}
		other.body = orderBody(first.Customer, items)
	case audit.Card:
		other.body = paymentBody(audit.Wallet, 0)
	case audit.Wallet:
		other.body = paymentBody(audit.Card, 0)
	}
	return &other
}

func orderBody(customer string, items map[string]int64) []byte {
	type item struct {
		SKU      string `json:"sku"`
		Quantity int64  `json:"quantity"`
	}
	body := struct {
		CustomerID string `json:"customer_id"`
		Items      []item `json:"items"`
	}{CustomerID: customer}
	for sku, quantity := range items {
		body.Items = append(body.Items, item{sku, quantity})
	}
	return encode(body)
}

// paymentBody has a nonce, which is no part of what a key is bound to.
func paymentBody(op audit.Operation, nonce uint64) []byte {
	method := map[string]string{"type": "wallet"}
	if op == audit.Card {
		method = map[string]string{"type": "card", "token": "tok_visa"}
	}
	return encode(map[string]any{"method": method, "request_nonce": strconv.FormatUint(nonce, 10)})
}

func encode(v any) []byte {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and integers
	}
	return body
}
