package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
)

// receipt is what the books need of an order or payment that was answered.
type receipt struct {
	ID         string `json:"id"`
	CustomerID string `json:"customer_id"` // of an order
	OrderID    string `json:"order_id"`    // of a payment
	Status     string `json:"status"`
	Items      []struct {
		SKU      string `json:"sku"`
		Quantity int64  `json:"quantity"`
	} `json:"items"`
	Total  money `json:"total"`
	Amount money `json:"amount"`
}

type money struct {
	Amount int64 `json:"amount"`
}

func parseReceipt(body []byte) (receipt, error) {
	var r receipt
	if err := json.Unmarshal(body, &r); err != nil {
		return r, fmt.Errorf("decode answer: %w", err)
	}
	if r.ID == "" {
		return r, errors.New("the answer has no id")
	}
	return r, nil
}

func (r receipt) quantities() map[string]int64 {
	q := map[string]int64{}
	for _, item := range r.Items {
		q[item.SKU] += item.Quantity
	}
	return q
}

// fits reports whether the answer is one to this request.
func (e *entry) fits(r receipt) bool {
	if e.Operation == Order {
		return r.CustomerID == e.Customer && r.Status == "pending" &&
			r.Total.Amount == e.Amount && maps.Equal(r.quantities(), e.Items)
	}
	return r.OrderID == e.Order && r.Status == "succeeded" && r.Amount.Amount == e.Amount
}
