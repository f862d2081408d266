package httpapi

import (
	"net/http"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// A card number has 13 to 19 digits (ISO/IEC 7812-1).
	minCardDigits = 13
	maxCardDigits = 19
	// maxGroupDigits is above the groups on any card. From ten digits on, a group is a thing of its
	// own, such as a Unix time after a counter.
	maxGroupDigits = 9
)

// errCardNumber does not say which field it was and does not repeat it.
var errCardNumber = problem{status: http.StatusBadRequest, code: "card_number_refused",
	detail: "The request contains what looks like a card number. Card numbers are never accepted here; send the provider's token instead."}

// uuidText is a UUID. Groups of it can look like those of a card number: about one random UUID in
// 25,000 does.
var uuidText = regexp.MustCompile(`(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// digitRun is digits in groups, with what people write between the groups.
var digitRun = regexp.MustCompile(`[0-9]+(?:[\s\p{Zs}\p{Pd}]+[0-9]+)*`)

// containsCardNumber says whether a text contains what must be taken for a card number: 13 to 19
// digits, at once or in groups with spaces or dashes between them, that begin as cards do and pass
// the Luhn check.
//
// It is a guard against accidents, not against evasion, and must not catch what shops send every
// day. So it ignores digits that touch a letter or an underscore, which are part of an identifier
// (a token, a hash, a ULID), UUIDs, and numbers with a fraction, such as a random one. The issuer's
// prefix excludes Unix times in milli-, micro- or nanoseconds, which begin with 1, dates, which
// begin with 19 or 20, and 978… and 979… of ISBNs. What remains is one in ten of the bare numbers
// of 13 to 19 digits that begin with 3 to 6.
//
// It looks at the strings, names and whole numbers of bodies, at the idempotency key, and at paths
// and queries. It never looks at fields that the fingerprint excludes: those may change between a
// request and its retry, and a retry must not be refused for what the first attempt did not have.
func containsCardNumber(text string) bool {
	digits := 0
	for i := range len(text) {
		if isDigit(text[i]) {
			digits++
		}
	}
	if digits < minCardDigits { // nearly all texts
		return false
	}
	text = uuidText.ReplaceAllString(text, "x")
	for _, at := range digitRun.FindAllStringIndex(text, -1) {
		if anyCardNumber(digitGroups(text, at[0], at[1])) {
			return true
		}
	}
	return false
}

// digitGroups splits the run of digits at text[from:to] into its groups, without the first or last
// one where it touches a letter or is part of a fraction.
func digitGroups(text string, from, to int) []string {
	groups := strings.FieldsFunc(text[from:to], func(r rune) bool { return r < '0' || r > '9' })
	if before, _ := utf8.DecodeLastRuneInString(text[:from]); isWordRune(before) || isFraction(text, from-1) {
		groups = groups[1:]
	}
	if after, _ := utf8.DecodeRuneInString(text[to:]); len(groups) > 0 && (isWordRune(after) || isFraction(text, to)) {
		groups = groups[:len(groups)-1]
	}
	return groups
}

// isFraction reports whether there is a decimal point at text[i], between two digits.
func isFraction(text string, i int) bool {
	return i > 0 && i+1 < len(text) && text[i] == '.' && isDigit(text[i-1]) && isDigit(text[i+1])
}

// anyCardNumber looks at every stretch of consecutive groups: an expiry date or a security code may
// stand beside the number.
func anyCardNumber(groups []string) bool {
	digits, from := strings.Join(groups, ""), 0
	for i, first := range groups {
		to := from
		for j, group := range groups[i:] {
			to += len(group)
			if to-from > maxCardDigits || (j > 0 && max(len(first), len(group)) > maxGroupDigits) {
				break
			}
			if isCardNumber(digits[from:to]) {
				return true
			}
		}
		from += len(first)
	}
	return false
}

func isCardNumber(digits string) bool {
	return len(digits) >= minCardDigits && len(digits) <= maxCardDigits && hasCardPrefix(digits) && passesLuhn(digits)
}

// hasCardPrefix says whether a number begins as those of card schemes do: 3 to 6 (Amex, Diners,
// JCB, Visa, Mastercard, Maestro, Discover, UnionPay, RuPay), 22 to 27 (Mir, Mastercard), 81 and 82
// (UnionPay, RuPay) and 9792 (Troy), the latter three never with fewer than 16 digits.
func hasCardPrefix(digits string) bool {
	if digits[0] >= '3' && digits[0] <= '6' {
		return true
	}
	long := len(digits) >= 16
	two := digits[:2]
	return long && ((two >= "22" && two <= "27") || two == "81" || two == "82" || digits[:4] == "9792")
}

// passesLuhn is the check of ISO/IEC 7812-1, annex B.
func passesLuhn(digits string) bool {
	sum := 0
	for i := range len(digits) {
		d := int(digits[len(digits)-1-i] - '0')
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isWordRune(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) }
