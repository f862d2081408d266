package checkout

import "math"

// Money is an amount in the minor units of a currency: 4200 USD is 42 dollars.
type Money struct {
	Amount   int64
	Currency string // ISO 4217, three upper-case letters
}

// Limits of amounts, as the API description says them.
const (
	// MaxAmount is the largest price, payment, refund, top-up and order total.
	MaxAmount = 1_000_000_000_000
	// MaxBalance is the largest balance: the largest integer that every JSON parser reads exactly
	// (RFC 8259, section 6).
	MaxBalance = 1<<53 - 1
)

// supported says which amounts can be charged; nil: all of them.
type supported func(Money) bool

// check returns why an amount cannot be charged.
func (s supported) check(amount Money) *Error {
	if s != nil && !s(amount) {
		return unprocessable("amount_not_supported", "The payment provider does not support an amount of %d %s in minor units.", amount.Amount, amount.Currency)
	}
	return nil
}

// Plus adds two amounts of one currency. It reports false when the currencies differ or the sum
// does not fit in 64 bits.
func (m Money) Plus(n Money) (Money, bool) {
	sum := m.Amount + n.Amount
	overflow := (n.Amount > 0 && sum < m.Amount) || (n.Amount < 0 && sum > m.Amount)
	if m.Currency != n.Currency || overflow {
		return Money{}, false
	}
	return Money{Amount: sum, Currency: m.Currency}, true
}

// Times multiplies a price, which must not be negative, by a quantity. It reports false when the
// product does not fit in 64 bits.
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
