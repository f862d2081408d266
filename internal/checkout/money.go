package checkout

import "math"

// Money is an amount in the minor units of a currency: 4200 USD is 42 dollars.
type Money struct {
	Amount   int64
	Currency string // ISO 4217, three upper-case letters
}

// Plus adds two amounts of one currency. It reports false when the currencies
// differ or the sum does not fit in 64 bits.
func (m Money) Plus(n Money) (Money, bool) {
	sum := m.Amount + n.Amount
	overflow := (n.Amount > 0 && sum < m.Amount) || (n.Amount < 0 && sum > m.Amount)
	if m.Currency != n.Currency || overflow {
		return Money{}, false
	}
	return Money{Amount: sum, Currency: m.Currency}, true
}

// Times multiplies a price, which must not be negative, by a quantity. It
// reports false when the product does not fit in 64 bits.
func (m Money) Times(quantity int32) (Money, bool) {
	if m.Amount < 0 || quantity < 0 {
		return Money{}, false
	}
	if quantity != 0 && m.Amount > math.MaxInt64/int64(quantity) {
		return Money{}, false
	}
	return Money{Amount: m.Amount * int64(quantity), Currency: m.Currency}, true
}

// Negated is the same amount in the other direction.
func (m Money) Negated() Money {
	return Money{Amount: -m.Amount, Currency: m.Currency}
}
