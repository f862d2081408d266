package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"github.com/oncepay/oncepay/internal/stack"
)

// sale is what the shoppers of a flash sale saw. Safe for concurrent use.
type sale struct {
	mu      sync.Mutex
	bodies  map[string]string // the first answer to each key
	orders  []string          // of those who got a unit
	soldOut int               // shoppers
	differ  int               // second answers that are not the first one
	odd     []string          // answers that are not expected
}

// note takes the answer to one click.
func (s *sale) note(key string, a answer, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bodies == nil {
		s.bodies = map[string]string{}
	}
	if first, again := s.bodies[key]; again {
		if first != string(a.Body) && !sameRefusal(first, a) {
			s.differ++
		}
		return
	}
	s.bodies[key] = string(a.Body)
	switch {
	case err != nil:
		s.odd = append(s.odd, err.Error())
	case a.Status == http.StatusCreated:
		var order struct{ ID string }
		_ = json.Unmarshal(a.Body, &order) // an order without an ID is found by the count
		s.orders = append(s.orders, order.ID)
	case a.code() == "out_of_stock":
		s.soldOut++
	default:
		s.odd = append(s.odd, fmt.Sprintf("%d %s", a.Status, a.code()))
	}
}

// sameRefusal reports whether a problem says what the first one said. The IDs of the requests
// differ.
func sameRefusal(first string, a answer) bool {
	return a.Status >= http.StatusBadRequest && codeOf([]byte(first)) == a.code()
}

// code is that of a problem, or "".
func (a answer) code() string { return codeOf(a.Body) }

func codeOf(body []byte) string {
	var problem struct{ Code string }
	_ = json.Unmarshal(body, &problem)
	return problem.Code
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

// compareSale is the verdict on a flash sale.
func (s *Server) compareSale(ctx context.Context, on *stage, seen *sale, sku, customer string, charges int) error {
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
	on.check("orders that shoppers were told of", len(seen.orders), flashStock)
	on.check("orders in the shop", len(orders.Data), flashStock)
	on.check("of them paid", paid, flashStock)
	on.check("charges at the provider", charges, flashStock)
	on.check("units left", product.Stock, 0)
	on.check("shoppers told out of stock", seen.soldOut, flashShoppers-flashStock)
	on.check("second clicks with another answer", seen.differ, 0)
	on.check("unexpected answers", fmt.Sprint(seen.odd), fmt.Sprint([]string(nil)))
	return nil
}
