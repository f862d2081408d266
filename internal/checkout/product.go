package checkout

import "time"

// Product is something for sale, with what is left of it.
type Product struct {
	SKU       string
	Name      string
	Price     Money
	Stock     int64 // units not yet reserved by an order; never negative
	UpdatedAt time.Time
}
