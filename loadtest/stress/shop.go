package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/oncepay/oncepay/api/client"
	"github.com/oncepay/oncepay/idempotency/transport"
	"github.com/oncepay/oncepay/loadtest/audit"
)

const (
	// Enough customers and products that they are shared by requests at the
	// same time, as in a shop, and not by all of them.
	customerCount = 20
	productCount  = 20

	openingStock = 1_000_000_000 // the most that the API takes
	topUp        = 500_000_000   // minor units; each customer gets two

	// setupParallel keeps the set-up short.
	setupParallel = 8
	// setupTimeout is for single requests outside the load, with all their
	// attempts: none of them waits for a provider, but some for a system that
	// has just been driven to its limits.
	setupTimeout  = time.Minute
	setupAttempts = 60
	setupPause    = time.Second
)

type product struct {
	sku   string
	price int64 // minor units
}

// shop is the part of the system that belongs to this run alone.
type shop struct {
	api       *client.ClientWithResponses
	http      *http.Client
	customers []string
	products  []product
	opening   audit.Opening
	opened    time.Time // by the database's clock, if events are measured
}

// openShop creates the run's products and customers, with money to spend.
func openShop(ctx context.Context, cfg config) (*shop, error) {
	httpClient := &http.Client{Timeout: setupTimeout, Transport: &transport.Transport{MaxAttempts: setupAttempts, MaxDelay: setupPause}}
	api, err := client.NewClientWithResponses(cfg.BaseURL+"/v1", client.WithHTTPClient(httpClient),
		client.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
			r.Header.Set("Authorization", "Bearer "+cfg.APIKey)
			return nil
		}))
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	s := &shop{
		api: api, http: httpClient,
		customers: make([]string, customerCount), products: make([]product, productCount),
		opening: audit.Opening{Wallets: map[string]int64{}, Stock: map[string]int64{}},
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(setupParallel)
	for i := range s.products {
		g.Go(func() (err error) { s.products[i], err = s.createProduct(gctx, cfg.run, i); return err })
	}
	for i := range s.customers {
		g.Go(func() (err error) { s.customers[i], err = s.createCustomer(gctx, cfg.run, i); return err })
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for _, p := range s.products {
		s.opening.Stock[p.sku] = openingStock
	}
	for _, c := range s.customers {
		s.opening.Wallets[c] = 2 * topUp
	}
	if events, wanted := cfg.events(); wanted {
		s.opened, err = events.Now(ctx)
	}
	return s, err
}

func (s *shop) createProduct(ctx context.Context, run string, i int) (product, error) {
	p := product{sku: fmt.Sprintf("stress-%s-%d", run, i), price: int64(100 + 37*i)}
	answer, err := s.api.PutProductWithResponse(ctx, p.sku, nil, client.ProductWrite{
		Name: "Stress product", Price: client.Money{Amount: p.price, Currency: "USD"}, Stock: openingStock,
	})
	if err != nil {
		return p, fmt.Errorf("create product: %w", err)
	}
	if answer.StatusCode() != http.StatusCreated {
		return p, fmt.Errorf("create product: %s %s", answer.Status(), answer.Body)
	}
	return p, nil
}

func (s *shop) createCustomer(ctx context.Context, run string, i int) (string, error) {
	name := fmt.Sprintf("stress-%s-customer-%d", run, i)
	answer, err := s.api.CreateCustomerWithResponse(ctx,
		&client.CreateCustomerParams{IdempotencyKey: name},
		client.CustomerCreate{Name: name, Email: name + "@example.com"})
	if err != nil {
		return "", fmt.Errorf("create customer: %w", err)
	}
	if answer.JSON201 == nil {
		return "", fmt.Errorf("create customer: %s %s", answer.Status(), answer.Body)
	}
	for n := range 2 {
		if err := s.topUp(ctx, answer.JSON201.ID, fmt.Sprintf("%s-top-up-%d", name, n)); err != nil {
			return "", err
		}
	}
	return answer.JSON201.ID.String(), nil
}

func (s *shop) topUp(ctx context.Context, customer uuid.UUID, key string) error {
	answer, err := s.api.CreateTopUpWithResponse(ctx, customer,
		&client.CreateTopUpParams{IdempotencyKey: key},
		client.TopUpCreate{Amount: client.Money{Amount: topUp, Currency: "USD"}})
	if err != nil {
		return fmt.Errorf("top up: %w", err)
	}
	if answer.JSON201 == nil {
		return fmt.Errorf("top up: %s %s", answer.Status(), answer.Body)
	}
	return nil
}
