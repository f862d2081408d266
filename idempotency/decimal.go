package idempotency

import (
	"strconv"
	"strings"
)

// decimal is the value digits × 10^exponent. Its digits have no zero at either end, so that
// equal values are equal structs. Zero is the zero value, with or without a sign.
type decimal struct {
	negative bool
	digits   string
	exponent int
}

func decimalOf(literal string) (decimal, bool) {
	number, negative := strings.CutPrefix(literal, "-")
	mantissa, power := number, "0"
	if i := strings.IndexAny(number, "eE"); i >= 0 {
		mantissa, power = number[:i], number[i+1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return decimal{}, true
	}
	exponent, err := strconv.Atoi(power)
	if err != nil {
		return decimal{}, false
	}
	significant := strings.TrimRight(digits, "0")
	exponent += len(digits) - len(significant) - len(fraction)
	return decimal{negative, significant, exponent}, true
}
