package httpapi

import (
	"context"

	"github.com/oncepay/oncepay/api"
	"github.com/oncepay/oncepay/internal/checkout"
)

func wireCustomer(c checkout.Customer) api.Customer {
	return api.Customer{ID: c.ID, Name: c.Name, Email: c.Email,
		CreatedAt: instant(c.CreatedAt), UpdatedAt: instant(c.UpdatedAt)}
}

func customerPath(c checkout.Customer) string { return at("customers", c.ID) }

func wireWallet(w checkout.Wallet) api.Wallet {
	return api.Wallet{CustomerID: w.CustomerID, Balance: wireBalance(w.Balance), UpdatedAt: instant(w.UpdatedAt)}
}

func wireTopUp(t checkout.TopUp) api.TopUp {
	return api.TopUp{ID: t.ID, CustomerID: t.CustomerID, Amount: wireMoney(t.Amount), Balance: wireBalance(t.Balance),
		CreatedAt: instant(t.CreatedAt)}
}

// CreateCustomer implements POST /customers.
func (h handlers) CreateCustomer(ctx context.Context, r api.CreateCustomerRequestObject) (api.CreateCustomerResponseObject, error) {
	wanted := checkout.NewCustomer{Name: r.Body.Name, Email: r.Body.Email}
	kept, err := h.service.CreateCustomer(ctx, callOf(ctx, "create_customer", created(ctx, wireCustomer, customerPath)), wanted)
	return answered(ctx, kept, err)
}

// GetCustomer implements GET /customers/{customer_id}.
func (h handlers) GetCustomer(ctx context.Context, r api.GetCustomerRequestObject) (api.GetCustomerResponseObject, error) {
	customer, err := h.service.Customer(ctx, accountOf(ctx), r.CustomerID)
	return api.GetCustomer200JSONResponse(wireCustomer(customer)), err
}

// UpdateCustomer implements PATCH /customers/{customer_id}, with or without a key.
func (h handlers) UpdateCustomer(ctx context.Context, r api.UpdateCustomerRequestObject) (api.UpdateCustomerResponseObject, error) {
	change := checkout.CustomerChange{Name: r.Body.Name, Email: r.Body.Email}
	kept, err := h.service.UpdateCustomer(ctx, callOf(ctx, "update_customer", changed(ctx, wireCustomer, customerPath)), r.CustomerID, change)
	return answered(ctx, kept, err)
}

// GetWallet implements GET /customers/{customer_id}/wallet.
func (h handlers) GetWallet(ctx context.Context, r api.GetWalletRequestObject) (api.GetWalletResponseObject, error) {
	wallet, err := h.service.Wallet(ctx, accountOf(ctx), r.CustomerID)
	return api.GetWallet200JSONResponse(wireWallet(wallet)), err
}

// CreateTopUp implements POST /customers/{customer_id}/top-ups.
func (h handlers) CreateTopUp(ctx context.Context, r api.CreateTopUpRequestObject) (api.CreateTopUpResponseObject, error) {
	wanted := checkout.NewTopUp{CustomerID: r.CustomerID, Amount: moneyOf(r.Body.Amount)}
	render := partOf(ctx, wireTopUp, func(t checkout.TopUp) string { return at("customers", t.CustomerID) + "/wallet" })
	kept, err := h.service.TopUp(ctx, h.money(callOf(ctx, "top_up", render)), wanted)
	return answered(ctx, kept, err)
}
