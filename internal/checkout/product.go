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

// PutProduct decides what becomes of the locked product; nil: there is none.
func PutProduct(current *Product, wanted ProductWrite, now time.Time) (Product, Changes, *Error) {
	if refused := wanted.If.check(current); refused != nil {
		return Product{}, Changes{}, refused
	}
	product := Product{SKU: wanted.SKU, Name: wanted.Name, Price: wanted.Price, Stock: wanted.Stock, Version: 1, UpdatedAt: now}
	if current == nil {
		return product, Changes{CreatedProduct: &product}, nil
	}
	product.Version = current.Version + 1
	return product, Changes{ChangedProduct: &product}, nil
}

// IsNew reports whether the product was created and not changed since.
func (p Product) IsNew() bool { return p.Version == 1 }

// UpdateProduct decides a change of the locked product; nil: there is none.
func UpdateProduct(current *Product, change ProductChange, now time.Time) (Product, Changes, *Error) {
	if current == nil {
		return Product{}, Changes{}, NotFound("product")
	}
	product := *current
	if refused := change.If.check(current); refused != nil {
		return Product{}, Changes{}, refused
	}
	switch stock := product.Stock + change.StockChange; {
	case stock < 0:
		return Product{}, Changes{}, conflict("out_of_stock", "Only %d of %s left; nothing was changed.", product.Stock, product.SKU)
	case stock > MaxStock && change.StockChange > 0:
		return Product{}, Changes{}, unprocessable("stock_too_large", "There can't be more than %d of a product; nothing was changed.", MaxStock)
	}
	if change.Name != nil {
		product.Name = *change.Name
	}
	if change.Price != nil {
		product.Price = *change.Price
	}
	product.Stock += change.StockChange
	product.Version++
	product.UpdatedAt = now
	return product, Changes{ChangedProduct: &product}, nil
}

// checkStock returns why an order cannot reserve so many units. Others may take units before it
// commits: the store then refuses (TakeStock in sql/queries/products.sql), and the order is decided
// again.
func (p Product) checkStock(quantity int32) *Error {
	if p.Stock < int64(quantity) {
		return conflict("out_of_stock", "Only %d of %s left; nothing was reserved.", p.Stock, p.SKU)
	}
	return nil
}

func preconditionFailed(message string) *Error {
	return &Error{Kind: KindPrecondition, Code: "precondition_failed", Message: message}
}
