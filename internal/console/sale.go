package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/oncepay/oncepay/internal/stack"
)

// The flash sale: many more shoppers than units.
const (
	flashStock    = 5
	flashShoppers = 30
)

// flashDemo: more shoppers than units, all at once, all with a double click.
func flashDemo(ctx context.Context, s *Server, on *stage) error {
	sku, customer, err := s.openSale(ctx)
	if err != nil {
		return err
	}
	on.say("%d prints are for sale. %d shoppers click twice.", flashStock, flashShoppers)
	var clicks [flashShoppers][2]answer
	var sent errgroup.Group
	for i := range clicks {
		key := newKey("flash")
		for j := range clicks[i] {
			sent.Go(func() (err error) {
				clicks[i][j], err = s.patient.send(ctx, stack.Nginx, http.MethodPost, "/v1/orders", key, cart(customer, sku, 1))
				return err
			})
		}
	}
	if err := sent.Wait(); err != nil {
		return fmt.Errorf("order: %w", err)
	}
	var orders, odd []string
	soldOut, differ := 0, 0
	for _, twice := range clicks {
		switch one := twice[0]; {
		case one.Status == http.StatusCreated:
			var order struct{ ID string }
			_ = json.Unmarshal(one.Body, &order) // an order without an ID is found by the count
			orders = append(orders, order.ID)
		case one.Code == "out_of_stock":
			soldOut++
		default:
			odd = append(odd, statusText(one, nil))
		}
		if !twice[0].same(twice[1]) {
			differ++
		}
	}
	on.say("%d got one, %d got %q.", len(orders), soldOut, "out of stock")
	charges, err := s.payTwice(ctx, orders)
	if err != nil {
		return err
	}
	on.say("The winners have paid, with a double click each.")
	on.check("orders that shoppers were told of", len(orders), flashStock)
	on.check("charges at the provider", charges, flashStock)
	on.check("shoppers told out of stock", soldOut, flashShoppers-flashStock)
	on.check("second clicks with another answer", differ, 0)
	on.check("unexpected answers", fmt.Sprint(odd), "[]")
	return s.compareSale(ctx, on, sku, customer)
}

// same reports whether two answers are one. The problems of a refusal differ in the IDs of the
// requests.
func (a answer) same(other answer) bool {
	return a.Status == other.Status && (bytes.Equal(a.Body, other.Body) || (a.Status >= http.StatusBadRequest && a.Code == other.Code))
}

// openSale makes a product with few units, and a customer.
func (s *Server) openSale(ctx context.Context) (sku, customer string, err error) {
	sku = newKey("flash")
	product := map[string]any{"name": "Limited print", "price": map[string]any{"amount": 9900, "currency": "USD"}, "stock": flashStock}
	if err := s.patient.call(ctx, http.MethodPut, "/v1/products/"+sku, "", product, &struct{}{}); err != nil {
		return "", "", fmt.Errorf("open the sale: %w", err)
	}
	customer, err = s.patient.customer(ctx)
	return sku, customer, err
}

// payTwice pays each order with a double click, and returns how many charges that made.
func (s *Server) payTwice(ctx context.Context, orders []string) (charges int, err error) {
	var clicks sync.WaitGroup
	for _, order := range orders {
		p := purchase{Order: order, Key: newKey("demo"), Token: "tok_visa"}
		for range 2 {
			clicks.Go(func() { _, _ = s.patient.pay(labelled(ctx, demonstration, "double click"), stack.Nginx, p) })
		}
	}
	clicks.Wait()
	for _, order := range orders {
		n, err := s.charged(ctx, order)
		if err != nil {
			return 0, err
		}
		charges += n
	}
	return charges, nil
}

// compareSale compares with the shop's books.
func (s *Server) compareSale(ctx context.Context, on *stage, sku, customer string) error {
	var product struct{ Stock int }
	if err := s.patient.call(ctx, http.MethodGet, "/v1/products/"+sku, "", nil, &product); err != nil {
		return fmt.Errorf("read the stock: %w", err)
	}
	var orders struct{ Data []struct{ Status string } }
	if err := s.patient.call(ctx, http.MethodGet, "/v1/orders?limit=100&customer_id="+customer, "", nil, &orders); err != nil {
		return fmt.Errorf("read the orders: %w", err)
	}
	paid := 0
	for _, order := range orders.Data {
		if order.Status == "paid" {
			paid++
		}
	}
	on.check("orders in the shop", len(orders.Data), flashStock)
	on.check("of them paid", paid, flashStock)
	on.check("units left", product.Stock, 0)
	return nil
}
