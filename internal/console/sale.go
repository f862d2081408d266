package console

import (
	"bytes"
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
func flashDemo(a *act) {
	sku, customer := newKey("flash"), ""
	a.step(func() (err error) {
		product := map[string]any{"name": "Limited print", "price": map[string]any{"amount": 9900, "currency": "USD"}, "stock": flashStock}
		if err := a.patient.call(a.ctx, http.MethodPut, "/v1/products/"+sku, "", product, &struct{}{}); err != nil {
			return err
		}
		customer, err = a.patient.customer(a.ctx)
		return err
	})
	a.say("%d prints are for sale. %d shoppers click twice.", flashStock, flashShoppers)
	var orders, odd []string
	soldOut, differ := 0, 0
	for _, twice := range a.clickTwice(sku, customer) {
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
	a.say("%d got one, %d got %q.", len(orders), soldOut, "out of stock")
	charges := a.payTwice(orders)
	a.say("The winners have paid, with a double click each.")
	a.compareSale(sku, customer)
	a.check("orders that shoppers were told of", len(orders), flashStock)
	a.check("charges at the provider", charges, flashStock)
	a.check("shoppers told out of stock", soldOut, flashShoppers-flashStock)
	a.check("second clicks with another answer", differ, 0)
	a.check("unexpected answers", fmt.Sprint(odd), "[]")
}

// clickTwice has each shopper order one unit, by two requests with one key.
func (a *act) clickTwice(sku, customer string) (answers [flashShoppers][2]answer) {
	a.step(func() error {
		var clicks errgroup.Group
		for i := range answers {
			key := newKey("flash")
			for j := range answers[i] {
				clicks.Go(func() (err error) {
					answers[i][j], err = a.patient.send(a.ctx, stack.Nginx, http.MethodPost, "/v1/orders", key, cart(customer, sku, 1))
					return err
				})
			}
		}
		return clicks.Wait()
	})
	return answers
}

// same reports whether two answers are one. The problems of a refusal differ in the IDs of the
// requests.
func (a answer) same(other answer) bool {
	return a.Status == other.Status && (bytes.Equal(a.Body, other.Body) || (a.Status >= http.StatusBadRequest && a.Code == other.Code))
}

// payTwice pays each order with a double click, and returns how many charges that made.
func (a *act) payTwice(orders []string) (charges int) {
	var clicks sync.WaitGroup
	for _, order := range orders {
		p := purchase{Order: order, Key: newKey("demo"), Token: "tok_visa"}
		for range 2 {
			clicks.Go(func() { _, _ = a.patient.pay(labelled(a.ctx, demonstration, "double click"), stack.Nginx, p) })
		}
	}
	clicks.Wait()
	for _, order := range orders {
		charges += a.charged(order)
	}
	return charges
}

// compareSale looks into the shop's books.
func (a *act) compareSale(sku, customer string) {
	var product struct{ Stock int }
	a.read("/v1/products/"+sku, &product)
	var orders struct{ Data []struct{ Status string } }
	a.read("/v1/orders?limit=100&customer_id="+customer, &orders)
	paid := 0
	for _, order := range orders.Data {
		if order.Status == "paid" {
			paid++
		}
	}
	a.check("orders in the shop", len(orders.Data), flashStock)
	a.check("of them paid", paid, flashStock)
	a.check("units left", product.Stock, 0)
}
