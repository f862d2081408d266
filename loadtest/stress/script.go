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

	"github.com/oncepay/oncepay/loadtest/shop"
)

const (
	// maxFinished bounds what is remembered for replays and mismatches.
	maxFinished = 2000
	maxQuantity = 3
)

// shot is one planned request.
type shot struct {
	request
	kind kind
	base string // URL of nginx or of a replica
	path string
	body []byte
}

// script decides what each request of the load is, from what has been
// answered so far. Safe for concurrent use: vegeta's workers ask it.
type script struct {
	cfg  config
	shop *shop.Shop

	mu       sync.Mutex
	started  uint64 // requests handed out; also names them
	pairs    int
	pair     *shot            // waits for its duplicate
	inFlight map[uint64]*shot // by name
	unpaid   []request        // acknowledged orders; order holds their ID
	finished []*shot
}

func newScript(cfg config, s *shop.Shop) *script {
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

	target.Method, target.URL = http.MethodPost, shot.base+"/v1"+shot.path+"#"+strconv.FormatUint(name, 10)
	target.Body, target.Header = shot.body, s.shop.Header(shot.key)
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
	if shot.expect == sentAgain || shot.kind == duplicate {
		return
	}
	if shot.operation == placeOrder {
		order := shot.request
		order.order = id
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
		finished := s.finished[rand.IntN(len(s.finished))]
		if k == replay {
			return s.replay(finished, name)
		}
		return s.mismatch(finished)
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

func (s *script) order(k kind, name uint64) *shot {
	q := request{key: s.key(name), operation: placeOrder, expect: first, items: map[string]int64{},
		customer: s.shop.Customers[rand.IntN(len(s.shop.Customers))]}
	for range 1 + rand.IntN(2) {
		product := rand.IntN(productCount)
		if sku := s.shop.SKU(product); q.items[sku] == 0 {
			q.items[sku] = 1 + rand.Int64N(maxQuantity)
			q.amount += q.items[sku] * s.shop.Price(product)
		}
	}
	return &shot{request: q, kind: k, base: s.cfg.BaseURL, path: "/orders", body: orderBody(q.customer, q.items)}
}

func (s *script) payment(k kind, name uint64) *shot {
	q := s.unpaid[0]
	s.unpaid = s.unpaid[1:]
	q.key, q.operation, q.expect, q.items = s.key(name), payCard, first, nil
	if k == walletPay || k == pairWallet {
		q.operation = payWallet
	}
	return &shot{request: q, kind: k, base: s.cfg.BaseURL, path: "/orders/" + q.order + "/payments", body: paymentBody(q.operation, name)}
}

func (s *script) key(name uint64) string { return fmt.Sprintf("%s-%d", s.shop.Run, name) }

// race sends the shot to one replica and prepares its duplicate for the other.
func (s *script) race(one *shot) *shot {
	replicas := [2]string{s.cfg.API1URL, s.cfg.API2URL}
	one.expect = raced
	second := *one
	second.kind = duplicate
	one.base, second.base = replicas[s.pairs%2], replicas[(s.pairs+1)%2]
	s.pairs++
	s.pair = &second
	return one
}

func (s *script) duplicate() *shot {
	second := s.pair
	s.pair = nil
	return second
}

func (s *script) replay(finished *shot, name uint64) *shot {
	again := *finished
	again.kind, again.expect, again.base = replay, sentAgain, s.cfg.BaseURL
	if again.operation != placeOrder {
		again.body = paymentBody(again.operation, name) // with another nonce
	}
	return &again
}

// mismatch asks for more of the same order, or pays in the other way.
func (s *script) mismatch(finished *shot) *shot {
	other := *finished
	other.kind, other.expect, other.base = mismatch, otherRequest, s.cfg.BaseURL
	switch finished.operation {
	case placeOrder:
		items := maps.Clone(finished.items)
		for sku := range items {
			items[sku]++
		}
		other.body = orderBody(finished.customer, items)
	case payCard:
		other.body = paymentBody(payWallet, 0)
	case payWallet:
		other.body = paymentBody(payCard, 0)
	}
	return &other
}

func orderBody(customer string, items map[string]int64) []byte {
	var list []any
	for sku, quantity := range items {
		list = append(list, map[string]any{"sku": sku, "quantity": quantity})
	}
	return encode(map[string]any{"customer_id": customer, "items": list})
}

// paymentBody has a nonce, which is no part of what a key is bound to.
func paymentBody(op operation, nonce uint64) []byte {
	method := map[string]string{"type": "wallet"}
	if op == payCard {
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
