package console

import (
	"bytes"
	"encoding/json"
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
	var product struct{ Stock int }
	a.step(func() (err error) {
		if customer, err = a.patient.customer(a.ctx); err != nil {
			return err
		}
		return a.patient.call(a.ctx, http.MethodPut, "/v1/products/"+sku, "",
			map[string]any{"name": "Limited print", "price": map[string]any{"amount": 9900, "currency": "USD"}, "stock": flashStock}, &product)
	})
	a.say("%d prints are for sale. %d shoppers click twice.", flashStock, flashShoppers)
	var orders []string
	soldOut, differ := 0, 0
	for _, clicks := range a.clickTwice(sku, customer) {
		var order struct{ ID string }
		if one := clicks[0]; one.Status == http.StatusCreated && json.Unmarshal(one.Body, &order) == nil {
			orders = append(orders, order.ID)
		} else if one.Code == "out_of_stock" {
			soldOut++
		}
		if !clicks[0].same(clicks[1]) {
			differ++
		}
	}
	a.say("%d got one, %d got %q.", len(orders), soldOut, "out of stock")
	paid, charges := 0, 0
	for _, id := range orders {
		a.payTwice(purchase{Order: id, Key: newKey("demo"), Token: "tok_visa"})
		if a.orderStatus(id) == "paid" {
			paid++
		}
		charges += a.charged(id)
	}
	a.say("The winners have paid, with a double click each.")
	a.read("/v1/products/"+sku, &product)
	a.check("orders that shoppers were told of", len(orders), flashStock)
	a.check("of them paid", paid, flashStock)
	a.check("charges at the provider", charges, flashStock)
	a.check("units left", product.Stock, 0)
	a.check("shoppers told out of stock", soldOut, flashShoppers-flashStock)
	a.check("second clicks with another answer", differ, 0)
}

// clickTwice has each shopper order one unit, by two requests with one key.
func (a *act) clickTwice(sku, customer string) (answers [flashShoppers][2]answer) {
	a.step(func() error {
		var clicks errgroup.Group
		for i := range answers {
			key := newKey("flash")
			for j := range answers[i] {
				clicks.Go(func() (err error) {
					answers[i][j], err = a.patient.send(a.ctx, stack.Nginx, http.MethodPost, "/v1/orders", key, "", cart(customer, sku, 1))
					return err
				})
			}
		}
		return clicks.Wait()
	})
	return answers
}

// payTwice pays by a double click, and retries until there is a final answer.
func (a *act) payTwice(p purchase) {
	var clicks sync.WaitGroup
	for range 2 {
		clicks.Go(func() { _, _ = a.pay(a.ctx, demonstration, "double click", stack.Nginx, p) })
	}
	clicks.Wait()
	a.retry(p)
}

// same reports whether two answers are one. The problems of a refusal differ in the IDs of the
// requests.
func (a answer) same(other answer) bool {
	return a.Status == other.Status && (bytes.Equal(a.Body, other.Body) || (a.Status >= http.StatusBadRequest && a.Code == other.Code))
}
