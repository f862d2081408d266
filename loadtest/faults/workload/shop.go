package workload

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	customersPerAccount = 12
	// topUp is enough for a long campaign: a wallet that is empty is a refusal like any other, but a dull one.
	topUp = 100_000_000
	// ample and scarce stock: the scarce product sells out within the first minute.
	ampleStock, scarceStock = 1_000_000, 40
	scarce                  = "faults-scarce"
)

var ample = []string{"faults-cup", "faults-hat", "faults-pen"}

// prices in minor units.
var prices = map[string]int64{"faults-cup": 700, "faults-hat": 1900, "faults-pen": 250, scarce: 9900}

// Shop is what a campaign buys from.
type Shop struct {
	Accounts  []string
	Customers map[string][]string         // by account
	Opening   map[string]map[string]int64 // stock, by account and SKU
}

// OpenShop creates products and customers with money, in every account, before anything is hurt.
func OpenShop(ctx context.Context, base string, accounts []string) (*Shop, error) {
	s := &Shop{Accounts: accounts, Customers: map[string][]string{}, Opening: map[string]map[string]int64{}}
	for _, account := range accounts {
		s.Opening[account] = map[string]int64{}
		for sku, price := range prices {
			stock := int64(ampleStock)
			if sku == scarce {
				stock = scarceStock
			}
			product := map[string]any{"name": sku, "price": money(price), "stock": stock}
			if _, err := ask(ctx, http.MethodPut, base+"/v1/products/"+sku, account, "", product); err != nil {
				return nil, fmt.Errorf("open the shop: %w", err)
			}
			s.Opening[account][sku] = stock
		}
		for i := range customersPerAccount {
			name := fmt.Sprintf("faults-%s-%d", account, i)
			id, err := ask(ctx, http.MethodPost, base+"/v1/customers", account, name, map[string]any{"name": name, "email": name + "@example.com"})
			if err == nil {
				_, err = ask(ctx, http.MethodPost, base+"/v1/customers/"+id+"/top-ups", account, name+"-top-up", map[string]any{"amount": money(topUp)})
			}
			if err != nil {
				return nil, fmt.Errorf("open the shop: %w", err)
			}
			s.Customers[account] = append(s.Customers[account], id)
		}
	}
	return s, nil
}

func money(amount int64) map[string]any { return map[string]any{"amount": amount, "currency": "USD"} }

// ask makes one request of the set-up, and gives the resource's ID.
func ask(ctx context.Context, method, url, account, key string, body any) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	raw, err := json.Marshal(body)
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(raw))
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+account)
	request.Header.Set("Content-Type", "application/json")
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", err
	}
	if answer.StatusCode >= http.StatusMultipleChoices {
		return "", fmt.Errorf("%s %s: %s %s", method, url, answer.Status, text)
	}
	var resource struct{ ID string }
	return resource.ID, json.Unmarshal(text, &resource)
}
