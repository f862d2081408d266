package main

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/oncepay/oncepay/api/client"
	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/shop"
)

// readers keep the audit short without being a load test of its own.
const readers = 8

// read collects what the API and the provider's list show of the shop: its orders, wallets and
// stock, the acknowledged payments, and their charges.
func (a *answers) read(ctx context.Context, s *shop.Shop, providerURL string) (b books.Books, err error) {
	b.Wallets = map[string]int64{}
	var mu sync.Mutex
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(readers)
	reading := func(read func() (put func(), err error)) {
		g.Go(func() error {
			put, err := read()
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				put()
			}
			return err
		})
	}
	for _, customer := range s.Customers {
		b.TopUps = append(b.TopUps, books.TopUp{Customer: customer, Amount: 2 * topUp})
		reading(func() (func(), error) {
			orders, err := ordersOf(gctx, s.API, customer)
			return func() { b.Orders = append(b.Orders, orders...) }, err
		})
		reading(func() (func(), error) {
			var wallet client.Wallet
			err := s.Get(gctx, "/customers/"+customer+"/wallet", &wallet)
			return func() { b.Wallets[customer] = wallet.Balance.Amount }, err
		})
	}
	for i := range productCount {
		reading(func() (func(), error) {
			var product client.Product
			err := s.Get(gctx, "/products/"+s.SKU(i), &product)
			return func() {
				b.Products = append(b.Products, books.Product{SKU: s.SKU(i), Opening: shop.OpeningStock, Stock: product.Stock})
			}, err
		})
	}
	of := a.kept()
	for _, e := range slices.Concat(of[payCard], of[payWallet]) {
		reading(func() (func(), error) {
			var payment client.Payment
			err := s.Get(gctx, "/payments/"+e.id, &payment)
			if errors.Is(err, shop.ErrNotFound) {
				return func() {}, nil // the check misses it
			}
			return func() { b.Payments = append(b.Payments, paymentOf(payment, e.customer)) }, err
		})
	}
	if err := g.Wait(); err != nil {
		return b, err
	}
	ours := map[string]bool{}
	for _, o := range b.Orders {
		ours[o.ID] = true
	}
	for _, e := range of[placeOrder] {
		ours[e.id] = true
	}
	b.Charges, err = books.ProviderList(ctx, s.HTTP, providerURL, "charges")
	b.Charges = slices.DeleteFunc(b.Charges, func(c books.Charge) bool { return !ours[c.Reference] })
	return b, err
}

func ordersOf(ctx context.Context, api shop.API, customer string) (rows []books.Order, err error) {
	for cursor := ""; ; {
		var page client.OrderPage
		if err := api.Get(ctx, "/orders?limit=100&customer_id="+customer+cursor, &page); err != nil {
			return nil, err
		}
		for _, o := range page.Data {
			rows = append(rows, orderOf(o))
		}
		if page.NextCursor == nil {
			return rows, nil
		}
		cursor = "&cursor=" + url.QueryEscape(*page.NextCursor)
	}
}

func orderOf(o client.Order) books.Order {
	items := map[string]int64{}
	for _, item := range o.Items {
		items[item.Sku] += int64(item.Quantity)
	}
	return books.Order{ID: o.ID.String(), Customer: o.CustomerID.String(), Status: string(o.Status), Total: o.Total.Amount, Items: items}
}

// paymentOf needs the customer, who is the order's: the API does not show it.
func paymentOf(p client.Payment, customer string) books.Payment {
	return books.Payment{ID: p.ID.String(), Order: p.OrderID.String(), Customer: customer, Method: string(p.Method.Type),
		Status: string(p.Status), Amount: p.Amount.Amount, Refunded: p.Refunded.Amount}
}
