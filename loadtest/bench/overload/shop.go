package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/oncepay/oncepay/idempotency/transport"
)

const (
	skus, customers = 200, 50
	openingStock    = 1_000_000_000
	// repeatable is how many orders are placed before, to be repeated, looked up and paid.
	repeatable = 1000
)

// shop is what belongs to this run alone.
type shop struct {
	cfg       config
	run       string
	opened    time.Time
	http      *http.Client // retries
	customers []string
	orders    []order // placed before
	next      atomic.Int64
	paid      atomic.Int64
}

// order is a request to place one, and what became of it.
type order struct {
	key  string
	body []byte
	id   string
}

func openShop(ctx context.Context, cfg config) (*shop, error) {
	s := &shop{cfg: cfg, run: uuid.NewString()[:8], opened: time.Now(), http: &http.Client{Transport: &transport.Transport{MaxDelay: time.Second}}}
	for i := range skus {
		body := []byte(`{"name":"Bench","price":{"amount":100,"currency":"USD"},"stock":` + fmt.Sprint(openingStock) + `}`)
		if _, err := s.send(ctx, http.MethodPut, "/products/"+s.sku(i), "", body); err != nil {
			return nil, err
		}
	}
	for i := range customers {
		name := fmt.Sprintf("bench-%s-%d", s.run, i)
		id, err := s.send(ctx, http.MethodPost, "/customers", name, []byte(`{"name":"Bench","email":"`+name+`@example.com"}`))
		if err != nil {
			return nil, err
		}
		s.customers = append(s.customers, id)
	}
	for range repeatable {
		o := s.newOrder()
		id, err := s.send(ctx, http.MethodPost, "/orders", o.key, o.body)
		if err != nil {
			return nil, err
		}
		o.id = id
		s.orders = append(s.orders, o)
	}
	return s, nil
}

func (s *shop) sku(i int) string { return fmt.Sprintf("bench-%s-%d", s.run, i%skus) }

// newOrder is an order that was not sent yet. Safe for concurrent use.
func (s *shop) newOrder() order {
	n := int(s.next.Add(1))
	return order{
		key:  fmt.Sprintf("bench-%s-order-%d", s.run, n),
		body: []byte(`{"customer_id":"` + s.customers[n%customers] + `","items":[{"sku":"` + s.sku(n) + `","quantity":1}]}`),
	}
}

// send repeats a request until it succeeds, and returns the ID of the resource.
func (s *shop) send(ctx context.Context, method, path, key string, body []byte) (id string, err error) {
	r, err := http.NewRequestWithContext(ctx, method, s.cfg.BaseURL+"/v1"+path, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header = s.header(key)
	answer, err := s.http.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", method, path, err)
	}
	if answer.StatusCode/100 != 2 {
		return "", fmt.Errorf("%s %s: %s %s", method, path, answer.Status, raw)
	}
	var resource struct{ ID string }
	return resource.ID, json.Unmarshal(raw, &resource)
}

func (s *shop) header(key string) http.Header {
	h := http.Header{"Authorization": {"Bearer " + s.cfg.APIKey}, "Content-Type": {"application/json"}}
	if key != "" {
		h.Set("Idempotency-Key", key)
	}
	return h
}
