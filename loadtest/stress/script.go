package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
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
	inFlight map[string]*shot // by name
	unpaid   []request        // acknowledged orders; order holds their ID
	finished []*shot
}

func newScript(cfg config, s *shop.Shop) *script {
	return &script{cfg: cfg, shop: s, inFlight: map[string]*shot{}}
}

// next is a vegeta.Targeter. The shot's name travels as the URL's fragment,
// which vegeta hands back with the result and never puts on the wire.
func (s *script) next(target *vegeta.Target) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	shot, name := s.plan(slot(s.started)), strconv.FormatUint(s.started, 10)
	s.inFlight[name] = shot
	s.started++

	path := "/orders"
	if shot.operation != placeOrder {
		path += "/" + shot.order + "/payments"
	}
	target.Method, target.URL = http.MethodPost, shot.base+"/v1"+path+"#"+name
	target.Header = s.shop.Header(shot.key)
	target.Body, err = shot.encode(name)
	return err
}

// take returns the shot that a result belongs to.
func (s *script) take(result *vegeta.Result) *shot {
	_, name, _ := strings.Cut(result.URL, "#")
	s.mu.Lock()
	defer s.mu.Unlock()
	defer delete(s.inFlight, name)
	return s.inFlight[name]
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
func (s *script) plan(k kind) *shot {
	pays := map[kind]operation{cardPay: payCard, walletPay: payWallet, pairCard: payCard, pairWallet: payWallet}[k]
	isRaced := k == pairOrder || k == pairCard || k == pairWallet
	var one *shot
	switch {
	case k == duplicate:
		return s.pair
	case (k == replay || k == mismatch) && len(s.finished) > 0:
		again := *s.finished[rand.IntN(len(s.finished))]
		again.kind, again.base, again.expect = k, s.cfg.BaseURL, sentAgain
		if k == mismatch {
			again.expect = otherRequest
		}
		return &again
	case pays != "" && len(s.unpaid) > 0:
		one = s.payment(k, pays)
	case isRaced:
		one = s.order(pairOrder)
	default:
		one = s.order(newOrder)
	}
	if isRaced {
		s.race(one)
	}
	return one
}

func (s *script) order(k kind) *shot {
	q := request{key: s.key(), operation: placeOrder, expect: first, items: map[string]int64{},
		customer: s.shop.Customers[rand.IntN(len(s.shop.Customers))]}
	for range 1 + rand.IntN(2) {
		product := rand.IntN(productCount)
		if sku := s.shop.SKU(product); q.items[sku] == 0 {
			q.items[sku] = 1 + rand.Int64N(maxQuantity)
			q.amount += q.items[sku] * s.shop.Price(product)
		}
	}
	return &shot{request: q, kind: k, base: s.cfg.BaseURL}
}

func (s *script) payment(k kind, op operation) *shot {
	q := s.unpaid[0]
	s.unpaid = s.unpaid[1:]
	q.key, q.operation, q.expect, q.items = s.key(), op, first, nil
	return &shot{request: q, kind: k, base: s.cfg.BaseURL}
}

func (s *script) key() string { return fmt.Sprintf("%s-%d", s.shop.Run, s.started) }

// race sends the shot to one replica and prepares its duplicate for the other.
func (s *script) race(one *shot) {
	replicas := [2]string{s.cfg.API1URL, s.cfg.API2URL}
	one.expect = raced
	second := *one
	second.kind = duplicate
	one.base, second.base = replicas[s.pairs%2], replicas[(s.pairs+1)%2]
	s.pairs++
	s.pair = &second
}

// encode is the body: what was planned, or, where another request is due, more of the same order
// or the other way to pay. The nonce of a payment is no part of what its key is bound to.
func (s *shot) encode(nonce string) ([]byte, error) {
	isOther := s.expect == otherRequest
	if s.operation == placeOrder {
		var items []map[string]any
		for _, sku := range slices.Sorted(maps.Keys(s.items)) {
			quantity := s.items[sku]
			if isOther {
				quantity++
			}
			items = append(items, map[string]any{"sku": sku, "quantity": quantity})
		}
		return json.Marshal(map[string]any{"customer_id": s.customer, "items": items})
	}
	method := map[string]string{"type": "wallet"}
	if (s.operation == payCard) != isOther {
		method = map[string]string{"type": "card", "token": "tok_visa"}
	}
	return json.Marshal(map[string]any{"method": method, "request_nonce": nonce})
}
