package checkout

import (
	"slices"
	"time"
)

// MaxStock is how many units of a product there may be.
const MaxStock = 1_000_000_000

// Product is something for sale, with what is left of it.
type Product struct {
	SKU       string
	Name      string
	Price     Money
	Stock     int64 // units not yet reserved by an order; never negative
	Version   int64 // 1 when it is created; each change adds 1, also an order that takes stock
	UpdatedAt time.Time
}

// ProductWrite asks for a product to be created or replaced, including its stock.
type ProductWrite struct {
	SKU   string
	Name  string
	Price Money
	Stock int64
	If    ProductCondition
}

// ProductChange changes the fields that are not nil.
type ProductChange struct {
	Name        *string
	Price       *Money
	StockChange int64 // added to the stock
	If          ProductCondition
}

// ProductCondition is what must hold of a product before it is changed (RFC 9110, section 13.1).
// The zero value always holds.
type ProductCondition struct {
	Absent   bool    // there is no such product
	Present  bool    // there is one,
	Versions []int64 // and it has one of these versions; nil: any
}

// check compares with the product as it is; nil: there is none.
func (c ProductCondition) check(current *Product) *Error {
	switch {
	case c.Absent && current != nil:
		return preconditionFailed("There is such a product already. Nothing was changed.")
	case c.Present && current == nil:
		return preconditionFailed("There is no such product to replace. Nothing was changed.")
	case c.Present && c.Versions != nil && !slices.Contains(c.Versions, current.Version):
		return preconditionFailed("The product has changed since that version was read. Nothing was changed.")
	}
	return nil
}

// Put decides what becomes of the locked product; nil: there is none.
func (w ProductWrite) Put(current *Product, now time.Time) (Product, *Error) {
	if err := w.If.check(current); err != nil {
		return Product{}, err
	}
	product := Product{SKU: w.SKU, Name: w.Name, Price: w.Price, Stock: w.Stock, Version: 1, UpdatedAt: now}
	if current != nil {
		product.Version = current.Version + 1
	}
	return product, nil
}

// IsNew reports whether the product was created and not changed since.
func (p Product) IsNew() bool { return p.Version == 1 }

// Apply decides a change of the locked product.
func (p Product) Apply(change ProductChange, now time.Time) (Product, *Error) {
	if err := change.If.check(&p); err != nil {
		return Product{}, err
	}
	switch stock := p.Stock + change.StockChange; {
	case stock < 0:
		return Product{}, conflict("out_of_stock", "Only %d of %s left; nothing was changed.", p.Stock, p.SKU)
	case stock > MaxStock && change.StockChange > 0:
		return Product{}, unprocessable("stock_too_large", "There can't be more than %d of a product; nothing was changed.", MaxStock)
	}
	if change.Name != nil {
		p.Name = *change.Name
	}
	if change.Price != nil {
		p.Price = *change.Price
	}
	p.Stock += change.StockChange
	p.Version++
	p.UpdatedAt = now
	return p, nil
}

func preconditionFailed(message string) *Error {
	return &Error{Kind: KindPrecondition, Code: "precondition_failed", Message: message}
}
