package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/oncepay/oncepay/api/client"
)

const (
	// pageSize is the most that the API gives at once.
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
func (r *Reader) Read(ctx context.Context, b *Book, opening Opening) (State, error) {
	s := State{Payments: map[string]Payment{}, Wallets: map[string]int64{}, Stock: map[string]int64{}}
	var mu sync.Mutex
	put := func(f func()) { mu.Lock(); defer mu.Unlock(); f() }

	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(readers)
	for customer := range opening.Wallets {
		g.Go(func() error {
			orders, balance, err := r.customer(gctx, customer)
			put(func() { s.Orders = append(s.Orders, orders...); s.Wallets[customer] = balance })
			return err
		})
	}
	for sku := range opening.Stock {
		g.Go(func() error {
			stock, err := r.stock(gctx, sku)
			put(func() { s.Stock[sku] = stock })
			return err
		})
	}
	for _, op := range []Operation{Card, Wallet} {
		for e := range b.acknowledged(op) {
			g.Go(func() error {
				p, ok, err := r.payment(gctx, e.id)
				put(func() {
					if ok {
						s.Payments[e.id] = p
					}
				})
				return err
			})
		}
	}
	if err := g.Wait(); err != nil {
		return State{}, err
	}
	var err error
	s.Charges, err = r.charges(ctx, s.ours(b))
	return s, err
}

// ours are the orders that a charge may belong to.
func (s *State) ours(b *Book) map[string]bool {
	ids := map[string]bool{}
	for _, row := range s.Orders {
		ids[row.ID] = true
	}
	for e := range b.acknowledged(Order) {
		ids[e.id] = true
	}
	return ids
}

func (r *Reader) customer(ctx context.Context, id string) ([]OrderRow, int64, error) {
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

func (r *Reader) orders(ctx context.Context, customer uuid.UUID) ([]OrderRow, error) {
	limit := client.Limit(pageSize)
	query := &client.ListOrdersParams{CustomerID: &customer, Limit: &limit}
	var rows []OrderRow
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

func row(o client.Order) OrderRow {
	items := map[string]int64{}
	for _, item := range o.Items {
		items[item.Sku] += int64(item.Quantity)
	}
	return OrderRow{ID: o.ID.String(), Customer: o.CustomerID.String(), Status: string(o.Status), Total: o.Total.Amount, Items: items}
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

func (r *Reader) payment(ctx context.Context, id string) (Payment, bool, error) {
	payment, err := uuid.Parse(id)
	if err != nil {
		return Payment{}, false, nil // was found when it was acknowledged; it exists nowhere
	}
	answer, err := r.API.GetPaymentWithResponse(ctx, payment)
	switch {
	case err != nil:
		return Payment{}, false, fmt.Errorf("read payment %s: %w", id, err)
	case answer.StatusCode() == http.StatusNotFound:
		return Payment{}, false, nil
	case answer.JSON200 == nil:
		return Payment{}, false, fmt.Errorf("read payment %s: %s", id, answer.Status())
	}
	p := answer.JSON200
	return Payment{Order: p.OrderID.String(), Method: string(p.Method.Type), Status: string(p.Status), Amount: p.Amount.Amount}, true, nil
}

// charges lists what the provider really charged for the given orders.
func (r *Reader) charges(ctx context.Context, orders map[string]bool) ([]Charge, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.ProviderURL+"/v1/charges", http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("list charges: %w", err)
	}
	answer, err := r.HTTP.Do(request)
	if err != nil {
		return nil, fmt.Errorf("list charges: %w", err)
	}
	defer answer.Body.Close()
	var list struct{ Data []Charge }
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("list charges: %s", answer.Status)
	}
	if err := json.NewDecoder(answer.Body).Decode(&list); err != nil {
		return nil, fmt.Errorf("list charges: %w", err)
	}
	var ours []Charge
	for _, c := range list.Data {
		if orders[c.Reference] {
			ours = append(ours, c)
		}
	}
	return ours, nil
}
