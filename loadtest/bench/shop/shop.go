// Package shop is what the benchmarks ask for: products and customers of one run, orders that were
// placed before, and requests to place, pay and repeat them.
package shop

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
	vegeta "github.com/tsenart/vegeta/v12/lib"
	"golang.org/x/sync/errgroup"

	"github.com/oncepay/oncepay/idempotency/transport"
)

const (
	customers = 50
	// OpeningStock is that of each product: more than any run sells.
	OpeningStock = 1_000_000_000
	// AtOnce is how many requests of the preparation are under way at a time.
	AtOnce = 8
	// patience is how long a request may take: longer than nginx waits, so that it answers first.
	patience = 20 * time.Second
	// maxIdle keeps every connection that a burst has opened.
	maxIdle = 10_000
)

// Config says where the service is, and how much is prepared.
type Config struct {
	BaseURL string // nginx
	APIKey  string
	SKUs    int
	Orders  int // placed before, to be repeated, looked up and paid
}

// Shop is what belongs to one run alone. It is safe for concurrent use.
type Shop struct {
	Opened    time.Time
	Customers []string
	Orders    []Order // placed before

	cfg  Config
	run  string
	http *http.Client // retries
	next atomic.Int64
	paid atomic.Int64
}

// Order is a request to place one, and what became of it.
type Order struct {
	Key  string
	Body []byte
	ID   string // once it is placed
}

// Open prepares products, customers and orders.
func Open(ctx context.Context, cfg Config) (*Shop, error) {
	s := &Shop{cfg: cfg, run: uuid.NewString()[:8], Opened: time.Now(), Customers: make([]string, customers),
		http: &http.Client{Transport: &transport.Transport{MaxDelay: time.Second}}}
	err := each(ctx, cfg.SKUs, func(ctx context.Context, i int) error {
		_, err := s.send(ctx, http.MethodPut, "/products/"+s.SKU(i), "",
			fmt.Appendf(nil, `{"name":"Bench","price":{"amount":100,"currency":"USD"},"stock":%d}`, OpeningStock))
		return err
	})
	if err != nil {
		return nil, err
	}
	err = each(ctx, customers, func(ctx context.Context, i int) (err error) {
		name := fmt.Sprintf("bench-%s-%d", s.run, i)
		s.Customers[i], err = s.send(ctx, http.MethodPost, "/customers", name, []byte(`{"name":"Bench","email":"`+name+`@example.com"}`))
		return err
	})
	if err != nil {
		return nil, err
	}
	s.Orders, err = s.Place(ctx, cfg.Orders)
	return s, err
}

// Place places orders, by a client that retries.
func (s *Shop) Place(ctx context.Context, n int) ([]Order, error) {
	orders := make([]Order, n)
	return orders, each(ctx, n, func(ctx context.Context, i int) (err error) {
		orders[i] = s.NewOrder()
		orders[i].ID, err = s.send(ctx, http.MethodPost, "/orders", orders[i].Key, orders[i].Body)
		return err
	})
}

// each does something n times, a few at a time.
func each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(AtOnce)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}

// SKU names a product of this run; after the last comes the first.
func (s *Shop) SKU(i int) string { return fmt.Sprintf("bench-%s-%d", s.run, i%s.cfg.SKUs) }

// NewOrder is an order that was not sent yet, of the next product.
func (s *Shop) NewOrder() Order {
	n := int(s.next.Add(1))
	return s.order(n, n)
}

func (s *Shop) order(n, sku int) Order {
	return Order{
		Key:  fmt.Sprintf("bench-%s-order-%d", s.run, n),
		Body: []byte(`{"customer_id":"` + s.Customers[n%customers] + `","items":[{"sku":"` + s.SKU(sku) + `","quantity":1}]}`),
	}
}

// NewOrders places a new order each time.
func (s *Shop) NewOrders() vegeta.Targeter {
	return func(t *vegeta.Target) error { return s.fillOrder(t, s.NewOrder()) }
}

// HotOrders is NewOrders of one product alone.
func (s *Shop) HotOrders() vegeta.Targeter {
	return func(t *vegeta.Target) error { return s.fillOrder(t, s.order(int(s.next.Add(1)), 0)) }
}

// Replays repeats the orders that were placed before.
func (s *Shop) Replays() vegeta.Targeter {
	return func(t *vegeta.Target) error { return s.fillOrder(t, s.any()) }
}

// any is one of the orders that were placed before.
func (s *Shop) any() Order { return s.Orders[int(s.next.Add(1))%len(s.Orders)] }

func (s *Shop) fillOrder(t *vegeta.Target, o Order) error {
	return s.fill(t, http.MethodPost, "/orders", o.Key, o.Body)
}

// LookUps asks what became of keys.
func (s *Shop) LookUps() vegeta.Targeter {
	return func(t *vegeta.Target) error {
		return s.fill(t, http.MethodGet, "/idempotency-keys/"+s.any().Key, "", nil)
	}
}

// Payments pays each order once by card; when all are paid, it asks for the stored answers.
func (s *Shop) Payments() vegeta.Targeter {
	return func(t *vegeta.Target) error { return s.fillPayment(t, s.Orders[int(s.paid.Add(1)-1)%len(s.Orders)]) }
}

// PaymentsOf pays each of these orders once by card, and then has nothing more to send.
func (s *Shop) PaymentsOf(orders []Order) vegeta.Targeter {
	var paid atomic.Int64
	return func(t *vegeta.Target) error {
		i := int(paid.Add(1) - 1)
		if i >= len(orders) {
			return vegeta.ErrNoTargets
		}
		return s.fillPayment(t, orders[i])
	}
}

func (s *Shop) fillPayment(t *vegeta.Target, o Order) error {
	return s.fill(t, http.MethodPost, "/orders/"+o.ID+"/payments", "pay-"+o.Key, []byte(`{"method":{"type":"card","token":"tok_visa"}}`))
}

// Lists lists the orders of a customer.
func (s *Shop) Lists() vegeta.Targeter {
	return func(t *vegeta.Target) error {
		return s.fill(t, http.MethodGet, "/orders?customer_id="+s.Customers[s.next.Add(1)%customers], "", nil)
	}
}

func (s *Shop) fill(t *vegeta.Target, method, path, key string, body []byte) error {
	t.Method, t.URL, t.Body, t.Header = method, s.cfg.BaseURL+"/v1"+path, body, s.Header(key)
	return nil
}

// Client sends every request once: without the Transport net/http would send a request with an
// Idempotency-Key again by itself, if its connection had gone.
func Client() *http.Client {
	return &http.Client{Timeout: patience, Transport: &transport.Transport{Base: Connections(), MaxAttempts: 1, AttemptTimeout: -1}}
}

// Connections keeps every connection that a burst has opened.
func Connections() *http.Transport {
	return &http.Transport{MaxIdleConns: maxIdle, MaxIdleConnsPerHost: maxIdle, IdleConnTimeout: patience}
}

// send repeats a request until it succeeds, and returns the ID of the resource.
func (s *Shop) send(ctx context.Context, method, path, key string, body []byte) (id string, err error) {
	r, err := http.NewRequestWithContext(ctx, method, s.cfg.BaseURL+"/v1"+path, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header = s.Header(key)
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

// Header is that of a request with a key, or with "" of one without.
func (s *Shop) Header(key string) http.Header {
	h := http.Header{"Authorization": {"Bearer " + s.cfg.APIKey}, "Content-Type": {"application/json"}}
	if key != "" {
		h.Set("Idempotency-Key", key)
	}
	return h
}
