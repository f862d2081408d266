package canonical

import (
	"bytes"
	"strconv"
	"strings"
)

// numberLength returns the length of the JSON number that text begins with, or 0.
func numberLength(text []byte) int {
	digits := func(from int) int {
		for from < len(text) && text[from] >= '0' && text[from] <= '9' {
			from++
		}
		return from
	}
	whole := 0
	if whole < len(text) && text[whole] == '-' {
		whole++
	}
	end := digits(whole)
	if end == whole || text[whole] == '0' && end > whole+1 {
		return 0
	}
	if end < len(text) && text[end] == '.' {
		if fraction := digits(end + 1); fraction > end+1 {
			end = fraction
		} else {
			return 0
		}
	}
	if end < len(text) && (text[end] == 'e' || text[end] == 'E') {
		power := end + 1
		if power < len(text) && (text[power] == '+' || text[power] == '-') {
			power++
		}
		if end = digits(power); end == power {
			return 0
		}
	}
	return end
}

// maxExactDigits is how many decimal digits a double holds in any case.
const maxExactDigits = 15

// appendNumber appends a number as ECMAScript writes it (RFC 8785, section 3.2.2.3). It
// returns false if a double has another value: 0.1 is kept, 9007199254740993 is not.
func appendNumber(out, literal []byte) ([]byte, bool) {
	if len(literal) <= maxExactDigits && literal[0] != '-' && bytes.IndexFunc(literal, notDigit) < 0 {
		return append(out, literal...), true
	}
	f, err := strconv.ParseFloat(string(literal), 64)
	if err != nil {
		return out, false
	}
	start := len(out)
	out = appendFloat(out, f)
	before, ok := decimalOf(string(literal))
	if !ok {
		return out, false
	}
	after, ok := decimalOf(string(out[start:]))
	return out, ok && before == after
}

func notDigit(r rune) bool { return r < '0' || r > '9' }

func appendFloat(out []byte, f float64) []byte {
	if f == 0 {
		return append(out, '0') // also for -0
	}
	if size := max(f, -f); size >= 1e-6 && size < 1e21 {
		return strconv.AppendFloat(out, f, 'f', -1, 64)
	}
	out = strconv.AppendFloat(out, f, 'e', -1, 64)
	if n := len(out); out[n-2] == '0' && notDigit(rune(out[n-3])) { // Go writes two digits at least
		out = append(out[:n-2], out[n-1])
	}
	return out
}

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
