package audit

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/oncepay/oncepay/api/client"
	"github.com/oncepay/oncepay/loadtest/books"
)

const (
	// pageSize is the most that the API returns at once.
	pageSize = 100
	// readers keep the audit short without being a load test of its own.
	readers = 8
)

// Reader reads the State through the public API and the provider's list.
type Reader struct {
	API         *client.ClientWithResponses
	HTTP        *http.Client
	ProviderURL string // without a trailing slash
}

// Read collects everything that Check needs to know about the keys in b.
func (r *Reader) Read(ctx context.Context, b *Answers, opening Opening) (State, error) {
	s := books.Books{Wallets: map[string]int64{}}
	var mu sync.Mutex
	put := func(f func()) { mu.Lock(); defer mu.Unlock(); f() }

	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(readers)
	for customer, amount := range opening.Wallets {
		s.TopUps = append(s.TopUps, books.TopUp{Customer: customer, Amount: amount})
		g.Go(func() error {
			orders, balance, err := r.customer(gctx, customer)
			put(func() { s.Orders = append(s.Orders, orders...); s.Wallets[customer] = balance })
			return err
		})
	}
	for sku, opened := range opening.Stock {
		g.Go(func() error {
			stock, err := r.stock(gctx, sku)
			put(func() { s.Products = append(s.Products, books.Product{SKU: sku, Opening: opened, Stock: stock}) })
			return err
		})
	}
	for e := range b.payments() {
		g.Go(func() error {
			p, ok, err := r.payment(gctx, e)
			put(func() {
				if ok {
					s.Payments = append(s.Payments, p)
				}
			})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return State{}, err
	}
	var err error
	s.Charges, err = r.charges(ctx, ours(b, s.Orders))
	return State{Books: s}, err
}

// ours are the orders that a charge may belong to.
func ours(b *Answers, orders []books.Order) map[string]bool {
	ids := map[string]bool{}
	for _, row := range orders {
		ids[row.ID] = true
	}
	for e := range b.acknowledged(Order) {
		ids[e.id] = true
	}
	return ids
}

func (r *Reader) customer(ctx context.Context, id string) ([]books.Order, int64, error) {
	customer, err := uuid.Parse(id)
	if err != nil {
		return nil, 0, fmt.Errorf("customer %q: %w", id, err)
	}
	orders, err := r.orders(ctx, customer)
	if err != nil {
		return nil, 0, fmt.Errorf("list orders of %s: %w", id, err)
	}
	wallet, err := r.API.GetWalletWithResponse(ctx, customer)
	if err != nil {
		return nil, 0, fmt.Errorf("read wallet of %s: %w", id, err)
	}
	if wallet.JSON200 == nil {
		return nil, 0, fmt.Errorf("read wallet of %s: %s", id, wallet.Status())
	}
	return orders, wallet.JSON200.Balance.Amount, nil
}

func (r *Reader) orders(ctx context.Context, customer uuid.UUID) ([]books.Order, error) {
	limit := client.Limit(pageSize)
	query := &client.ListOrdersParams{CustomerID: &customer, Limit: &limit}
	var rows []books.Order
	for {
		page, err := r.API.ListOrdersWithResponse(ctx, query)
		if err != nil {
			return nil, err
		}
		if page.JSON200 == nil {
			return nil, fmt.Errorf("answered %s", page.Status())
		}
		for _, o := range page.JSON200.Data {
			rows = append(rows, row(o))
		}
		if page.JSON200.NextCursor == nil {
			return rows, nil
		}
		query.Cursor = page.JSON200.NextCursor
	}
}

func row(o client.Order) books.Order {
	items := map[string]int64{}
	for _, item := range o.Items {
		items[item.Sku] += int64(item.Quantity)
	}
	return books.Order{ID: o.ID.String(), Customer: o.CustomerID.String(), Status: string(o.Status), Total: o.Total.Amount, Items: items}
}

func (r *Reader) stock(ctx context.Context, sku string) (int64, error) {
	product, err := r.API.GetProductWithResponse(ctx, sku)
	if err != nil {
		return 0, fmt.Errorf("read product %s: %w", sku, err)
	}
	if product.JSON200 == nil {
		return 0, fmt.Errorf("read product %s: %s", sku, product.Status())
	}
	return product.JSON200.Stock, nil
}

// payment reads a payment. The API does not show its customer, who is the order's.
func (r *Reader) payment(ctx context.Context, e *entry) (books.Payment, bool, error) {
	payment, err := uuid.Parse(e.id)
	if err != nil {
		return books.Payment{}, false, nil //nolint:nilerr // was found when it was acknowledged; it exists nowhere
	}
	answer, err := r.API.GetPaymentWithResponse(ctx, payment)
	switch {
	case err != nil:
		return books.Payment{}, false, fmt.Errorf("read payment %s: %w", e.id, err)
	case answer.StatusCode() == http.StatusNotFound:
		return books.Payment{}, false, nil
	case answer.JSON200 == nil:
		return books.Payment{}, false, fmt.Errorf("read payment %s: %s", e.id, answer.Status())
	}
	p := answer.JSON200
	return books.Payment{
		ID: e.id, Order: p.OrderID.String(), Customer: e.Customer, Method: string(p.Method.Type), Status: string(p.Status),
		Amount: p.Amount.Amount,
	}, true, nil
}

// charges lists what the provider charged for the given orders.
func (r *Reader) charges(ctx context.Context, orders map[string]bool) ([]books.Charge, error) {
	all, err := books.ProviderList(ctx, r.HTTP, r.ProviderURL, "charges")
	return slices.DeleteFunc(all, func(c books.Charge) bool { return !orders[c.Reference] }), err
}
