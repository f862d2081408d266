package postgres

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncepay/oncepay/internal/checkout"
	"github.com/oncepay/oncepay/internal/postgres/internal/dbsqlc"
)

// plenty is more than a load test can order.
const plenty = 1_000_000

// DemoKey is the API key of the first demo account.
const DemoKey = "sk_test_demo"

// demoAccounts are well known, with their API keys. Never seed them in production.
var demoAccounts = []struct {
	id        uuid.UUID
	name, key string
}{
	{uuid.MustParse("00000000-0000-7000-8000-000000000001"), "Demo", DemoKey},
	{uuid.MustParse("00000000-0000-7000-8000-000000000002"), "Other", "sk_test_other"},
}

// demoProducts are for sale in each demo account.
var demoProducts = []checkout.Product{
	{SKU: "tee-black", Name: "Black T-shirt", Price: checkout.Money{Amount: 2500, Currency: "USD"}, Stock: plenty},
	{SKU: "mug-white", Name: "White mug", Price: checkout.Money{Amount: 1200, Currency: "USD"}, Stock: plenty},
	{SKU: "sticker-pack", Name: "Sticker pack", Price: checkout.Money{Amount: 400, Currency: "USD"}, Stock: plenty},
	{SKU: "limited-print", Name: "Limited print, signed", Price: checkout.Money{Amount: 9900, Currency: "USD"}, Stock: 10},
}

// Seed adds the demo accounts, their API keys and products where they are missing. What is there
// stays as it is, the stock included.
func Seed(ctx context.Context, pool *pgxpool.Pool) error {
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		queries := dbsqlc.New(tx)
		for _, account := range demoAccounts {
			hash := sha256.Sum256([]byte(account.key))
			err := queries.SeedAccount(ctx, dbsqlc.SeedAccountParams{ID: account.id, Name: account.name, KeyHash: hash[:]})
			if err != nil {
				return fmt.Errorf("account %s: %w", account.name, err)
			}
			if err := seedProducts(ctx, queries, account.id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("seed the demo data: %w", err)
	}
	return nil
}

func seedProducts(ctx context.Context, queries *dbsqlc.Queries, account uuid.UUID) error {
	for _, p := range demoProducts {
		err := queries.SeedProduct(ctx, dbsqlc.SeedProductParams{AccountID: account, Sku: p.SKU, Name: p.Name,
			PriceAmount: p.Price.Amount, PriceCurrency: p.Price.Currency, Stock: p.Stock})
		if err != nil {
			return fmt.Errorf("product %s: %w", p.SKU, err)
		}
	}
	return nil
}

// CountDemoKeys returns how many API keys of the demo data are in the database and not revoked.
func CountDemoKeys(ctx context.Context, pool *pgxpool.Pool) (int, error) {
	hashes := make([][]byte, len(demoAccounts))
	for i, account := range demoAccounts {
		hash := sha256.Sum256([]byte(account.key))
		hashes[i] = hash[:]
	}
	valid, err := dbsqlc.New(pool).CountValidKeys(ctx, hashes)
	return int(valid), translate("look for API keys of the demo data", err)
}
