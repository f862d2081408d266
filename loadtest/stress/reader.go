package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/oncepay/oncepay/api/client"
	"github.com/oncepay/oncepay/loadtest/books"
	"github.com/oncepay/oncepay/loadtest/shop"
)

// audit reads everything back, and adds what is wrong with it to the violations.
func (o *outcome) audit(ctx context.Context, s *shop.Shop) error {
	held, err := o.answers.read(ctx, s, o.cfg.PSPURL)
	if err == nil && o.cfg.Database != "none" {
		o.Events, err = readEvents(ctx, o.cfg.Database, s.Opened)
	}
	if err != nil {
		return fmt.Errorf("read everything back: %w", err)
	}
	o.Violations = slices.Concat(o.Violations, o.answers.check(held), o.Events.check())
	return nil
}

// read collects what the API and the provider's list show of the shop: its orders, wallets and
// stock, the acknowledged payments, and their charges.
func (a answers) read(ctx context.Context, s *shop.Shop, providerURL string) (b books.Books, err error) {
	b.Wallets, b.Products = map[string]int64{}, make([]books.Product, productCount)
	for _, customer := range s.Customers {
		var wallet client.Wallet
		orders, err := ordersOf(ctx, s.API, customer)
		if err == nil {
			err = s.Get(ctx, "/customers/"+customer+"/wallet", &wallet)
		}
		if err != nil {
			return b, err
		}
		b.TopUps = append(b.TopUps, books.TopUp{Customer: customer, Amount: 2 * topUp})
		b.Orders, b.Wallets[customer] = append(b.Orders, orders...), wallet.Balance.Amount
	}
	err = shop.Each(ctx, productCount, func(ctx context.Context, i int) error {
		var product client.Product
		err := s.Get(ctx, "/products/"+s.SKU(i), &product)
		b.Products[i] = books.Product{SKU: s.SKU(i), Opening: shop.OpeningStock, Stock: product.Stock}
		return err
	})
	if err != nil {
		return b, err
	}
	of := a.kept()
	paid := slices.Concat(of[payCard], of[payWallet])
	b.Payments = make([]books.Payment, len(paid))
	err = shop.Each(ctx, len(paid), func(ctx context.Context, i int) error {
		var payment client.Payment
		err := s.Get(ctx, "/payments/"+paid[i].id, &payment)
		if errors.Is(err, shop.ErrNotFound) {
			return nil // the check misses it
		}
		b.Payments[i] = paymentOf(payment, paid[i].customer)
		return err
	})
	if err != nil {
		return b, err
	}
	b.Payments = slices.DeleteFunc(b.Payments, func(p books.Payment) bool { return p.ID == "" })
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
