// Package shop is the client of the load tests: products and customers of one run, orders that were
// placed before, and requests to place, pay and repeat them.
package shop

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	vegeta "github.com/tsenart/vegeta/v12/lib"
	"golang.org/x/sync/errgroup"
)

const (
	// OpeningStock is that of each product: the most that the API takes.
	OpeningStock = 1_000_000_000
	// AtOnce is how many requests of the preparation are under way at a time.
	AtOnce = 8
	// setUp bounds a request of the preparation, with all its attempts.
	setUp = time.Minute
)

// Config says where the service is, and how much is prepared.
type Config struct {
	BaseURL   string // nginx
	APIKey    string
	Name      string // of the load: all that it makes begins with it
	SKUs      int
	Customers int
	TopUp     int64 // of each customer, in minor units
	Orders    int   // placed before, to be repeated, looked up and paid
}

// Shop is what belongs to one run alone. It is safe for concurrent use.
type Shop struct {
	API

	Opened    time.Time
	Run       string // what the names of all that it makes begin with
	Customers []string
	Orders    []Order // placed before

	cfg  Config
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
	s := &Shop{API: NewAPI(cfg.BaseURL, cfg.APIKey, setUp), Opened: time.Now(), Run: cfg.Name + "-" + uuid.NewString()[:8],
		Customers: make([]string, cfg.Customers), cfg: cfg}
	err := Each(ctx, cfg.SKUs, AtOnce, func(ctx context.Context, i int) error {
		return s.Product(ctx, s.SKU(i), "Bench", s.Price(i), OpeningStock)
	})
	if err != nil {
		return nil, err
	}
	err = Each(ctx, cfg.Customers, AtOnce, func(ctx context.Context, i int) (err error) {
		s.Customers[i], err = s.Customer(ctx, fmt.Sprintf("%s-customer-%d", s.Run, i), cfg.TopUp)
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
	return orders, Each(ctx, n, AtOnce, func(ctx context.Context, i int) (err error) {
		orders[i] = s.NewOrder()
		orders[i].ID, err = s.Post(ctx, "/orders", orders[i].Key, orders[i].Body)
		return err
	})
}

// Each does something n times, atOnce at a time, and returns the first error.
func Each(ctx context.Context, n, atOnce int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}

// Beside runs do in a goroutine. stop cancels its context, and waits until it has returned.
func Beside(ctx context.Context, do func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var doing sync.WaitGroup
	doing.Go(func() { do(ctx) })
	return func() { cancel(); doing.Wait() }
}

// SKU names a product of this run; after the last comes the first.
func (s *Shop) SKU(i int) string { return fmt.Sprintf("%s-%d", s.Run, i%s.cfg.SKUs) }

// Price is that of a product, in minor units. No two neighbours have the same.
func (s *Shop) Price(i int) int64 { return int64(100 + 37*(i%20)) }

// NewOrder is an order that was not sent yet, of the next product.
func (s *Shop) NewOrder() Order {
	n := int(s.next.Add(1))
	return s.order(n, n)
}

func (s *Shop) order(n, sku int) Order {
	return Order{
		Key:  fmt.Sprintf("%s-order-%d", s.Run, n),
		Body: []byte(`{"customer_id":"` + s.Customers[n%len(s.Customers)] + `","items":[{"sku":"` + s.SKU(sku) + `","quantity":1}]}`),
	}
}

// any is one of the orders that were placed before.
func (s *Shop) any() Order { return s.Orders[int(s.next.Add(1))%len(s.Orders)] }

// NewOrders places a new order each time. It and the next five are a [vegeta.Targeter].
func (s *Shop) NewOrders(t *vegeta.Target) error { return s.fillOrder(t, s.NewOrder()) }

// HotOrders is NewOrders of one product alone.
func (s *Shop) HotOrders(t *vegeta.Target) error {
	return s.fillOrder(t, s.order(int(s.next.Add(1)), 0))
}

// Replays repeats the orders that were placed before.
func (s *Shop) Replays(t *vegeta.Target) error { return s.fillOrder(t, s.any()) }

// LookUps asks what became of keys.
func (s *Shop) LookUps(t *vegeta.Target) error {
	return s.fill(t, http.MethodGet, "/idempotency-keys/"+s.any().Key, "", nil)
}

// Lists lists the orders of a customer.
func (s *Shop) Lists(t *vegeta.Target) error {
	return s.fill(t, http.MethodGet, "/orders?customer_id="+s.Customers[int(s.next.Add(1))%len(s.Customers)], "", nil)
}

// Payments pays each order once by card; when all are paid, it asks for the stored answers.
func (s *Shop) Payments(t *vegeta.Target) error {
	return s.fillPayment(t, s.Orders[int(s.paid.Add(1)-1)%len(s.Orders)])
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

func (s *Shop) fillOrder(t *vegeta.Target, o Order) error {
	return s.fill(t, http.MethodPost, "/orders", o.Key, o.Body)
}

func (s *Shop) fillPayment(t *vegeta.Target, o Order) error {
	return s.fill(t, http.MethodPost, "/orders/"+o.ID+"/payments", "pay-"+o.Key, []byte(`{"method":{"type":"card","token":"tok_visa"}}`))
}

func (s *Shop) fill(t *vegeta.Target, method, path, key string, body []byte) error {
	t.Method, t.URL, t.Body, t.Header = method, s.BaseURL+"/v1"+path, body, s.Header(key)
	return nil
}
