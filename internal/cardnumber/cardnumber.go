// Package cardnumber notices card numbers that got into a text by accident.
package cardnumber

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// uuidText is a UUID. Groups of it can look like those of a card number: about one random UUID in
// 25,000 does.
var uuidText = regexp.MustCompile(`(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// digitRun is digits in groups, with spaces and dashes between the groups.
var digitRun = regexp.MustCompile(`[0-9]+(?:[\s-]+[0-9]+)*`)

// markedRuns are groups of digits with the same mark between all of them.
var markedRuns = map[string]*regexp.Regexp{
	".": regexp.MustCompile(`[0-9]+(?:\.[0-9]+)+`), "/": regexp.MustCompile(`[0-9]+(?:/[0-9]+)+`), ",": regexp.MustCompile(`[0-9]+(?:,[0-9]+)+`),
	":": regexp.MustCompile(`[0-9]+(?::[0-9]+)+`), "_": regexp.MustCompile(`[0-9]+(?:_[0-9]+)+`), "|": regexp.MustCompile(`[0-9]+(?:\|[0-9]+)+`),
}

// Contains says whether a text contains what must be taken for a card number: digits that begin as
// those of a card scheme do, as many as the scheme has, at once or in groups as on a card, with
// spaces, dashes or one mark (. / , : _ |) between them, that pass the Luhn check. Digits may be
// those of any script, and invisible characters may stand between them.
//
// It is a guard against accidents, not against evasion, and must not catch what shops send every
// day. So it ignores digits that touch a Latin letter or an underscore, which are part of an
// identifier (a token, a hash, a ULID), UUIDs, and numbers with a fraction, such as a random one.
// The issuer's prefix excludes Unix times in milli-, micro- or nanoseconds, which begin with 1,
// dates, which begin with 19 or 20, and 978… and 979… of ISBNs. What remains is one in ten of the
// bare numbers with the prefix and length of a card.
//
// It looks at the strings, names and whole numbers of bodies, at the idempotency key, and at paths
// and queries. It never looks at fields that the fingerprint excludes: those may change between a
// request and its retry, and a retry must not be refused for what the first attempt did not have.
func Contains(text string) bool {
	if !hasManyDigits(text) {
		return false
	}
	if isASCII(text) {
		return containsPlain(text)
	}
	without, hidden := plain(text, -1)
	if containsPlain(without) {
		return true
	}
	if !hidden {
		return false
	}
	spaced, _ := plain(text, ' ') // they may also be all that separates the groups
	return containsPlain(spaced)
}

// containsPlain is [Contains] of a text in ASCII.
func containsPlain(text string) bool {
	text = uuidText.ReplaceAllString(text, "x")
	for _, at := range digitRun.FindAllStringIndex(text, -1) {
		if anyCardNumber(digitGroups(text, at[0], at[1]), 1) {
			return true
		}
	}
	for mark, run := range markedRuns {
		if !strings.Contains(text, mark) {
			continue
		}
		for _, at := range run.FindAllStringIndex(text, -1) {
			if anyCardNumber(digitGroups(text, at[0], at[1]), 2) { // one group may be a fraction
				return true
			}
		}
	}
	return false
}

// hasManyDigits reports whether there are as many digits as a card number has without a letter
// between them. Nearly all texts have fewer, and so do most IDs and UUIDs; they need no further
// look.
func hasManyDigits(text string) bool {
	digits := 0
	for _, c := range text {
		switch {
		case c >= '0' && c <= '9', c >= utf8.RuneSelf && unicode.IsNumber(c):
			if digits++; digits == minCardDigits {
				return true
			}
		case c|0x20 >= 'a' && c|0x20 <= 'z':
			digits = 0
		}
	}
	return false
}

// digitGroups splits the run of digits at text[from:to] into its groups, without the first or last
// one where it touches a letter or is part of a fraction.
func digitGroups(text string, from, to int) []string {
	groups := strings.FieldsFunc(text[from:to], func(r rune) bool { return r < '0' || r > '9' })
	if from > 0 && (isWord(text[from-1]) || isFraction(text, from-1)) {
		groups = groups[1:]
	}
	if to < len(text) && len(groups) > 0 && (isWord(text[to]) || isFraction(text, to)) {
		groups = groups[:len(groups)-1]
	}
	return groups
}

// isFraction reports whether there is a decimal point at text[i], between two digits.
func isFraction(text string, i int) bool {
	return i > 0 && i+1 < len(text) && text[i] == '.' && isDigit(text[i-1]) && isDigit(text[i+1])
}

// groupings are how cards show their digits, and how people type them: Amex 4-6-5, Diners Club
// 4-6-4, the old Visa 4-3-3-3, some Maestro 4-4-5, some UnionPay 6-13, everything else by fours.
var groupings = [][]int{
	{4, 4, 4, 4}, {4, 4, 4, 4, 1}, {4, 4, 4, 4, 2}, {4, 4, 4, 4, 3}, {4, 6, 5}, {4, 6, 4}, {4, 3, 3, 3}, {4, 4, 5}, {6, 13},
}

// maxGroups is the length of the longest grouping.
const maxGroups = 5

// anyCardNumber looks at every stretch of so many consecutive groups or more: an expiry date or a
// security code may stand beside the number.
func anyCardNumber(groups []string, fewest int) bool {
	for i := range groups {
		for j := i + fewest; j <= min(i+maxGroups, len(groups)); j++ {
			if isGrouped(groups[i:j]) && isCardNumber(strings.Join(groups[i:j], "")) {
				return true
			}
		}
	}
	return false
}

func isGrouped(groups []string) bool {
	fits := func(group string, size int) bool { return len(group) == size }
	return len(groups) == 1 || slices.ContainsFunc(groupings, func(sizes []int) bool { return slices.EqualFunc(groups, sizes, fits) })
}

// scheme is a card scheme's range of prefixes, and how many digits its numbers have.
type scheme struct {
	from, to string
	digits   []int
}

// minCardDigits is the fewest digits of a card number that is looked for.
const minCardDigits = 13

// long are the lengths of the schemes that have no single one.
var long = []int{16, 17, 18, 19}

// schemes are the prefixes and lengths of ISO/IEC 7812-1, by scheme. Maestro, the last, also has
// numbers of 12 digits, which are too common.
var schemes = []scheme{
	{"4", "4", []int{13, 16, 19}},                        // Visa
	{"51", "55", []int{16}}, {"2221", "2720", []int{16}}, // Mastercard
	{"34", "34", []int{15}}, {"37", "37", []int{15}}, // American Express
	{"300", "305", []int{14}}, {"3095", "3095", []int{14}}, {"36", "36", []int{14}}, {"38", "39", []int{14}}, // Diners Club
	{"3528", "3589", long},                 // JCB
	{"60", "60", long}, {"64", "65", long}, // Discover, RuPay, Troy
	{"62", "62", long}, {"81", "81", long}, // UnionPay
	{"2200", "2204", long},      // Mir
	{"82", "82", []int{16}},     // RuPay
	{"9792", "9792", []int{16}}, // Troy
	{"50", "50", maestro}, {"56", "58", maestro}, {"61", "61", maestro}, {"63", "63", maestro}, {"66", "69", maestro},
}

var maestro = append([]int{13, 14, 15}, long...)

func isCardNumber(digits string) bool {
	return len(digits) >= minCardDigits && slices.ContainsFunc(schemes, func(s scheme) bool { return s.issues(digits) }) && passesLuhn(digits)
}

func (s scheme) issues(digits string) bool {
	prefix := digits[:len(s.from)]
	return prefix >= s.from && prefix <= s.to && slices.Contains(s.digits, len(digits))
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

func isWord(c byte) bool { return c == '_' || isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'z' }
