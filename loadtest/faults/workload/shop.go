package workload

import (
	"context"
	"fmt"
	"slices"

	"github.com/oncepay/oncepay/loadtest/shop"
)

const (
	customersPerAccount = 12
	// topUp is enough for a long campaign: an empty wallet would make every payment a refusal.
	topUp = 100_000_000
	// ample stock never ends. scarce stock is less than what clients want at any time: none of it
	// is ever paid, so that it comes back, by cancelling and by expiry, and is fought for until the
	// end.
	ampleStock, scarceStock = 100_000_000, 10
	scarce                  = "faults-scarce"
)

var ample = []string{"faults-cup", "faults-hat", "faults-pen"}

// Shop is what a campaign buys from.
type Shop struct {
	Accounts  []string
	Customers map[string][]string         // by account
	Opening   map[string]map[string]int64 // stock, by account and SKU
}

// OpenShop creates products and customers with money, in every account, before any fault runs.
func OpenShop(ctx context.Context, base string, accounts []string) (*Shop, error) {
	s := &Shop{Accounts: accounts, Customers: map[string][]string{}, Opening: map[string]map[string]int64{}}
	for _, account := range accounts {
		opened, err := shop.Open(ctx, shop.Config{BaseURL: base, APIKey: account, Name: "faults", Customers: customersPerAccount, TopUp: topUp})
		if err != nil {
			return nil, fmt.Errorf("open the shop: %w", err)
		}
		s.Customers[account] = opened.Customers
		s.Opening[account] = map[string]int64{scarce: scarceStock}
		for _, sku := range ample {
			s.Opening[account][sku] = ampleStock
		}
		for i, sku := range slices.Concat(ample, []string{scarce}) {
			if err := opened.Product(ctx, sku, sku, int64(250+450*i), s.Opening[account][sku]); err != nil {
				return nil, fmt.Errorf("open the shop: %w", err)
			}
		}
	}
	return s, nil
}
